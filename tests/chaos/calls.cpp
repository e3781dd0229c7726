// The handler of the world `calls`: charges the gateway of gateway.py, then books as the ledger
// does.
//
// Each step is a line in two files of this process, written before anything else happens. No
// transaction takes these back. "runs" is that of ledger.cpp, "calls" adds token and time.
#include <fcntl.h>
#include <httplib.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <hapax/outside.hpp>
#include <hapax/plugin.hpp>
#include <pqxx/pqxx>
#include <thread>

namespace {

using hapax::Call;
using hapax::Context;
using hapax::Message;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

// PostgreSQL cannot keep an answer so deep.
constexpr int kTooDeep = 15'000;

std::string too_deep() { return std::string(kTooDeep, '[') + std::string(kTooDeep, ']'); }

// A line is whole or not there.
void append(const std::string& file, const std::string& line) {
  const int to = open(file.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0666);
  if (to < 0 || write(to, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("cannot write " + file);
  close(to);
}

class Calls final : public hapax::OutsideHandler {
 public:
  void on_start(const hapax::Setup& setup) override {
    folder_ = setup.options().at("folder").get<std::string>();
    port_ = setup.options().at("gateway").get<int>();
  }

  json call(const Message& message, const Call& about) override {
    const json order = message.json();
    return noted(message, order, "call", about.token(),
                 [&] { return charge(message, order, about); });
  }

  void book(const Message& message, const json& answer, Context& context) override {
    const json order = message.json();
    noted(message, order, "book", answer.value("token", std::int64_t{0}), [&] {
      act(order);
      context.write("UPDATE balances SET amount = amount + $2 WHERE account = $1",
                    order.at("account"), order.at("amount"));
      context.write(
          "INSERT INTO ledger (op, account, amount, payload, topic, part, kafka_offset) "
          "VALUES ($1, $2, $3, $4, $5, $6, $7)",
          order.at("op"), order.at("account"), order.at("amount"), order.at("payload"),
          message.topic(), message.partition(), message.offset());
      context.write("INSERT INTO booked (op, charge) VALUES ($1, $2)", order.at("op"),
                    answer.at("charge"));
      return 0;
    });
  }

  hapax::Verdict reconcile(const Message& message, const Call& about) override {
    using hapax::Verdict;
    const json order = message.json();
    return noted(message, order, "ask", about.token(), [&] {
      httplib::Client client = client_until(about.deadline());
      const httplib::Result answer = client.Get("/charges/" + std::string(about.key()));
      if (answer && answer->status == 404) return Verdict::not_done();
      if (!answer || answer->status != 200) throw std::runtime_error("it cannot tell yet");
      return Verdict::done(answer_of(answer->body, about));
    });
  }

 private:
  json charge(const Message& message, const json& order, const Call& about) const {
    const std::string deed = order.at("do");
    const bool early = order.at("amount").get<int>() % 2 == 0;
    const bool dies = deed == "kill" || (deed == "kill once" && is_first(order, "kill"));
    if (dies && early) std::raise(SIGKILL);
    if (early) {
      const json quote = about.step("quote", [&](std::string_view) { return drawn(about); });
      note(message, order, "quote", quote, about.token());
    }
    if (deed == "hang once" && is_first(order, "hang")) hang(message, order, about);
    httplib::Client client = client_until(about.deadline());
    // Half of the handlers listen when they are asked to stop.
    const std::stop_callback stops(about.stop_token(), [&] {
      if (early) client.stop();
    });
    const httplib::Headers headers{{"Idempotency-Key", std::string(about.key())},
                                   {"Fencing-Token", std::to_string(about.token())},
                                   {"Worker", std::to_string(getpid())}};
    const httplib::Result answer =
        client.Post("/charges", headers, order.dump(), "application/json");
    if (answer.error() == httplib::Error::Connection)
      throw hapax::NotCalled("the gateway does not accept connections");
    if (!answer) throw std::runtime_error("no answer: " + httplib::to_string(answer.error()));
    if (answer->status == 402) throw hapax::Reject("declined");
    if (answer->status != 200)
      throw std::runtime_error("the gateway answered " + std::to_string(answer->status));
    if (dies) std::raise(SIGKILL);
    json kept = answer_of(answer->body, about);
    if (deed == "deep answer") kept["deep"] = json::parse(too_deep());
    return kept;
  }

  // Another one each time, so that two of one operation show a step that was repeated.
  static json drawn(const Call& about) {
    return std::to_string(getpid()) + '-' + std::to_string(about.token());
  }

  // The token tells which call's answer was kept.
  static json answer_of(const std::string& body, const Call& about) {
    return {{"charge", json::parse(body).at("charge")}, {"token", about.token()}};
  }

  // As a client without a time-out does.
  [[noreturn]] void hang(const Message& message, const json& order, const Call& about) const {
    append(folder_ / "hangs", std::to_string(getpid()) + '\n');
    note(message, order, "hang", "hangs", about.token());
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  void act(const json& order) const {
    const std::string deed = order.at("do");
    if (deed == "throw") throw std::runtime_error("told to fail");
    if (deed == "reject booking") throw hapax::Reject("told to reject");
    if (deed == "until mended" && !std::filesystem::exists(folder_ / "mended"))
      throw std::runtime_error("not mended yet");
    if (deed == "flaky" && (is_first(order, "1") || is_first(order, "2")))
      throw hapax::Retry("not yet");
    if (deed == "kill at booking" && is_first(order, "1")) std::raise(SIGKILL);
  }

  httplib::Client client_until(Clock::time_point deadline) const {
    httplib::Client client("127.0.0.1", port_);
    client.set_connection_timeout(std::chrono::seconds(1));
    client.set_read_timeout(
        std::max(std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now()),
                 std::chrono::microseconds(1000)));
    return client;
  }

  template <class Do>
  std::invoke_result_t<Do> noted(const Message& message, const json& order, const char* part,
                                 std::int64_t token, Do act) const {
    note(message, order, part, "began", token);
    try {
      std::invoke_result_t<Do> result = act();
      note(message, order, part, "ended", token);
      return result;
    } catch (const hapax::NotCalled&) {
      note(message, order, part, "not called", token);
      throw;
    } catch (const hapax::Reject&) {
      note(message, order, part, "refused", token);
      throw;
    } catch (...) {
      note(message, order, part, "threw", token);
      throw;
    }
  }

  void note(const Message& message, const json& order, const std::string& part,
            const std::string& what, std::int64_t token) const {
    const std::string op = order.at("op");
    const std::string run = what == "began" || what == "ended" ? what : "threw";
    const std::string pid = std::to_string(getpid());
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    append(folder_ / "calls" / pid,
           json{{"op", op}, {"part", part}, {"what", what}, {"token", token}, {"at", now}}.dump() +
               '\n');
    if (part != "hang" && part != "quote")
      append(folder_ / "runs" / pid, op + ' ' + std::to_string(message.partition()) + ' ' +
                                         std::to_string(message.offset()) + ' ' + run + '\n');
  }

  // True for the first who asks, in all processes.
  bool is_first(const json& order, const std::string& what) const {
    const auto mark = folder_ / "marks" / (order.at("op").get<std::string>() + '.' + what);
    const int file = open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) return false;
    close(file);
    return true;
  }

  std::filesystem::path folder_;
  int port_ = 0;
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Calls>("calls", "1"))
