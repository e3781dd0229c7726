#include "tools/demo/gate_demo.hpp"

#include <CLI/CLI.hpp>
#include <atomic>
#include <thread>

#include "key/sha256.hpp"
#include "sandbox/free_port.hpp"
#include "sandbox/proxy.hpp"
#include "sandbox/temporary_folder.hpp"
#include "tools/demo/broker.hpp"
#include "tools/demo/client.hpp"
#include "tools/demo/handler.hpp"
#include "tools/demo/ledger.hpp"
#include "tools/demo/process.hpp"
#include "tools/screen.hpp"

namespace hapax::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kClients = 8;
constexpr int kCutEach = 5;  // one connection in so many, and in one of two directions
constexpr milliseconds kRetry{50};
constexpr milliseconds kLook{100};
constexpr seconds kStandstill{60};
constexpr seconds kGateShutdown{20};

struct GateDemoOptions {
  int payments = 2'000;
};

std::int64_t amount_of(int payment) { return 100 + payment % 900; }

// The demo in order: run() is the story.
class GateDemo {
 public:
  explicit GateDemo(const GateDemoOptions& options) : options_(options) {}

  ExitCode run() {
    screen_.title("hapax demo gate: " + grouped(options_.payments) + " payments by HTTP from " +
                  std::to_string(kClients) +
                  " clients that retry; connections are cut, gate and worker killed");
    set_up();
    std::vector<std::jthread> clients;
    clients.reserve(kClients);
    for (int i = 0; i < kClients; ++i)
      clients.emplace_back([this](const std::stop_token& stop) { pay(stop); });
    await_payments(options_.payments / 4);
    kill(*gate_);
    await_payments(options_.payments / 2);
    kill(*worker_);
    await_payments(options_.payments * 3 / 4);
    kill(*gate_);
    kill(*worker_);
    await_payments(options_.payments);
    await("results read by their clients", ended_);
    clients.clear();
    const bool exact = stop() && prove();
    screen_.verdict(exact);
    return exact ? kDone : kFailed;
  }

 private:
  void set_up() {
    postgres_ = start_demo_postgres();
    ledger_ = std::make_unique<DemoLedger>(postgres_->url("demo"), kDemoWorkerRole);
    const std::string url = postgres_->url("demo", kDemoWorkerRole);
    worker_ = std::make_unique<DemoProcess>(folder_.path(), "worker", "run",
                                            demo_worker("worker", broker_.bootstrap(), url));
    const std::uint16_t port = sandbox::free_port();
    const std::string token = "ann " + key::hex(key::sha256("token-of-ann"));
    gate_ = std::make_unique<DemoProcess>(
        folder_.path(), "gate", "gate",
        nlohmann::ordered_json{
            {"gate",
             {{"listen", "127.0.0.1:" + std::to_string(port)},
              {"callers", {{"tokens", token}}},
              {"operations", {{"key", key::hex(key::sha256("1") + key::sha256("2"))}}}}},
            {"kafka", {{"bootstrap.servers", broker_.bootstrap()}, {"group.id", kDemoGroup}}},
            {"postgres", {{"url", url}}},
            {"routes",
             {{{"path", "/payments"},
               {"accept", {{"topic", kDemoTopic}, {"scope", kDemoHandler}}}}}},
            {"admin", {{"listen", "127.0.0.1:0"}}}});
    worker_->start();
    gate_->start();
    proxy_ = std::make_unique<sandbox::Proxy>(
        sandbox::Proxy::Target{"127.0.0.1", std::to_string(port)}, milliseconds(0),
        [this](int connection, sandbox::Proxy::From from, const std::string&) {
          const auto cut_from =
              connection % 2 == 0 ? sandbox::Proxy::From::client : sandbox::Proxy::From::server;
          if (connection % kCutEach != 0 || from != cut_from) return sandbox::Proxy::Then::forward;
          ++cuts_;
          return sandbox::Proxy::Then::cut;
        });
    screen_.line("PostgreSQL " + ledger_->server_version() +
                 ", a built-in Kafka broker, and started " + gate_->text() + ", " +
                 worker_->text());
    screen_.line("a proxy cuts one connection in " + std::to_string(kCutEach) +
                 ", before the request arrives or before the answer does");
  }

  // A client: takes the next payment, until none is left.
  void pay(const std::stop_token& stop) {
    for (int number; !stop.stop_requested() && (number = next_++) < options_.payments;) {
      const nlohmann::json payment{{"id", "p" + std::to_string(number)},
                                   {"account", "a" + std::to_string(number % 10)},
                                   {"amount_minor", amount_of(number)}};
      const DemoReply accepted = insist(stop, "POST", "/payments",
                                        "Idempotency-Key: order-" + std::to_string(number) +
                                            "\r\nContent-Type: application/json\r\n",
                                        payment.dump());
      if (accepted.status == 202) ++accepted_;
      if (accepted.replayed) ++replayed_;
      for (;;) {
        const DemoReply result = insist(stop, "GET", accepted.location, "", "");
        if (stop.stop_requested()) return;
        if (result.status != 202) {
          if (result.status == 200 && result.body.find("\"booked\"") != std::string::npos)
            ++booked_;
          ++ended_;
          break;
        }
        std::this_thread::sleep_for(kRetry);
      }
    }
  }

  // Until there is an answer that is not about the moment.
  DemoReply insist(const std::stop_token& stop, const std::string& method, const std::string& path,
                   const std::string& head, const std::string& body) {
    while (!stop.stop_requested()) {
      ++requests_;
      DemoReply reply = demo_request(proxy_->port(), method, path,
                                     "Authorization: Bearer token-of-ann\r\n" + head, body);
      if (reply.status != 0 && reply.status != 409 && reply.status < 500) return reply;
      std::this_thread::sleep_for(kRetry);
    }
    return {};
  }

  template <class Value>
  void await_value(const std::string& what, std::int64_t goal, const Value& value) {
    std::int64_t last = -1;
    auto moved = steady_clock::now();
    for (;;) {
      const std::int64_t now = value();
      screen_.progress(what, now, options_.payments);
      if (now >= goal) return;
      if (now != last) moved = steady_clock::now();
      last = now;
      if (steady_clock::now() - moved > kStandstill)
        throw Stop(kFailed, what + " stand at " + grouped(now) + "\nthe gate's log ends with\n" +
                                gate_->last_lines() + "\nthe worker's log ends with\n" +
                                worker_->last_lines());
      gate_->expect_running(kLook);
      worker_->expect_running(milliseconds(0));
    }
  }
  void await_payments(std::int64_t goal) {
    await_value("payments booked", goal, [this] { return ledger_->payments(); });
  }
  void await(const std::string& what, const std::atomic<int>& count) {
    await_value(what, options_.payments, [&count] { return count.load(); });
  }

  void kill(DemoProcess& process) {
    process.kill();
    screen_.alarm("SIGKILL for " + process.text() + " at " + grouped(ledger_->payments()) +
                  " payments, and started again");
    process.start();
  }

  bool stop() {
    bool clean = true;
    for (DemoProcess* process : {gate_.get(), worker_.get()}) {
      process->terminate();
      const auto exit = process->wait(kGateShutdown);
      clean = clean && exit && exit->success();
      screen_.line("SIGTERM for " + process->text() + ": " +
                   (exit ? exit->text() : std::string("still there")));
    }
    return clean;
  }

  bool prove();

  const GateDemoOptions options_;
  DemoScreen screen_;
  sandbox::TemporaryFolder folder_{"demo"};
  std::unique_ptr<sandbox::PostgresServer> postgres_;
  std::unique_ptr<DemoLedger> ledger_;
  DemoBroker broker_;
  std::unique_ptr<DemoProcess> worker_, gate_;
  std::atomic<int> next_ = 0, requests_ = 0, accepted_ = 0, replayed_ = 0, booked_ = 0, ended_ = 0,
                   cuts_ = 0;
  std::unique_ptr<sandbox::Proxy> proxy_;
};

// Every claim is checked against what clients sent and were told, not against what hapax reports.
bool GateDemo::prove() {
  std::int64_t missing = 0, twice = 0, wrong = 0;
  auto amounts = ledger_->amounts();
  for (int i = 0; i < options_.payments; ++i) {
    const auto found = amounts.find("p" + std::to_string(i));
    if (found == amounts.end()) {
      ++missing;
      continue;
    }
    twice += found->second.size() > 1;
    wrong += found->second.front() != amount_of(i);
    amounts.erase(found);
  }
  wrong += static_cast<std::int64_t>(amounts.size());
  screen_.title("\nIs it exact?");
  const bool once =
      screen_.fact(missing == 0 && twice == 0 && wrong == 0, "every payment is booked once",
                   grouped(options_.payments) + " sent, " + grouped(missing) + " missing, " +
                       grouped(twice) + " twice, " + grouped(wrong) + " wrong");
  const bool told = screen_.fact(accepted_ == options_.payments && booked_ == options_.payments,
                                 "every client has its 202 and its result",
                                 grouped(accepted_) + " accepted, " + grouped(replayed_) +
                                     " of them by a replay, " + grouped(booked_) + " results");
  const bool tried = screen_.fact(
      cuts_ > 0 && requests_ > 2 * options_.payments, "there was trouble enough",
      grouped(cuts_) + " connections cut, 4 kills, " + grouped(requests_) + " requests");
  return once && told && tried;
}

}  // namespace

CLI::App* add_gate_demo(CLI::App& demo, CommandLine& line) {
  CLI::App* const command = demo.add_subcommand(
      "gate", "The same for HTTP: clients that retry, cut connections, a gate and a worker killed");
  const auto options = std::make_shared<GateDemoOptions>();
  command->add_option("--payments", options->payments, "How many payments to send")
      ->capture_default_str()
      ->check(CLI::Range(100, 50'000));
  command->callback(
      [&line, options] { line.command = [options] { return GateDemo(*options).run(); }; });
  return command;
}

}  // namespace hapax::app
