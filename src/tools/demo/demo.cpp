// hapax demo: the promise, shown on this machine in half a minute. It needs an installed PostgreSQL
// and nothing else: the broker is librdkafka's, the workers are this binary.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>

#include "cli/command.hpp"
#include "kafka/consumer.hpp"
#include "sandbox/postgres_server.hpp"
#include "sandbox/temporary_folder.hpp"
#include "tools/demo/broker.hpp"
#include "tools/demo/gate_demo.hpp"
#include "tools/demo/handler.hpp"
#include "tools/demo/ledger.hpp"
#include "tools/demo/messages.hpp"
#include "tools/demo/process.hpp"
#include "tools/screen.hpp"

namespace hapax::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr milliseconds kDemoLook{100};
constexpr seconds kStandstillTimeout{60};  // so long nothing may move
constexpr seconds kShutdown{20};
constexpr int kAims = 50;  // tries to hit a worker in the middle of a transaction
constexpr milliseconds kAim{1};

struct DemoOptions {
  std::size_t messages = 20'000;
  int workers = 2;
  bool keep = false;
};

std::int64_t sum(const std::map<std::int32_t, std::int64_t>& offsets) {
  std::int64_t all = 0;
  for (const auto& [partition, offset] : offsets) all += offset;
  return all;
}

// The demo in order: run() is the story.
class Demo {
 public:
  explicit Demo(const DemoOptions& options)
      : options_(options), plan_(plan_demo(options.messages)) {}

  ExitCode run() {
    screen_.title("hapax demo: " + grouped(messages()) + " messages, " +
                  std::to_string(options_.workers) + " workers, one of them killed half-way");
    set_up();
    send();
    start_workers();
    await_payments(payments() / 2);
    DemoProcess& killed = kill_one();
    killed.start();
    screen_.line(killed.text() + " started again; the group misses the dead one after " +
                 std::to_string(kDemoSessionTimeout.count()) + " s");
    await_payments(payments());
    await_no_lag();
    const bool stopped = stop_workers();
    const bool exact = prove() && stopped;
    screen_.verdict(exact);
    if (options_.keep) stay();
    return exact ? kDone : kFailed;
  }

 private:
  std::int64_t payments() const { return static_cast<std::int64_t>(plan_.ledger.size()); }
  std::int64_t messages() const { return static_cast<std::int64_t>(plan_.messages.size()); }

  void set_up() {
    postgres_ = start_demo_postgres();
    ledger_ = std::make_unique<DemoLedger>(postgres_->url("demo"), kDemoWorkerRole);
    screen_.line("PostgreSQL " + ledger_->server_version() + " on 127.0.0.1:" +
                 std::to_string(postgres_->port()) + ", a throw-away with schema and worker role");
    broker_ = std::make_unique<DemoBroker>();
    screen_.line("Kafka: librdkafka " + kafka::Consumer::version() + "'s built-in broker on " +
                 broker_->bootstrap() + "; topic " + kDemoTopic + ", " +
                 std::to_string(kDemoPartitions) + " partitions");
  }

  void send() {
    broker_->send(plan_.messages);
    const auto line = [&](std::size_t count, const std::string& what) {
      const std::string number = grouped(static_cast<std::int64_t>(count));
      screen_.detail(std::string(9 - std::min<std::size_t>(9, number.size()), ' ') + number + " " +
                     what);
    };
    screen_.line("sent " + grouped(messages()) + " messages:");
    line(plan_.ledger.size(), "payments, " + money(plan_.sum) + " in all");
    line(plan_.duplicates, "duplicates: same key and payload, half of them in another partition");
    line(plan_.drifted, "drifted: a used key with another amount");
    line(plan_.malformed + plan_.negative, "poisonous: " + std::to_string(plan_.malformed) +
                                               " malformed, " + std::to_string(plan_.negative) +
                                               " with a negative amount");
  }

  void start_workers() {
    std::string names;
    for (int i = 1; i <= options_.workers; ++i) {
      const std::string name = "worker-" + std::to_string(i);
      workers_.push_back(std::make_unique<DemoProcess>(
          folder_.path(), name, "run",
          demo_worker(name, broker_->bootstrap(), postgres_->url("demo", kDemoWorkerRole))));
      workers_.back()->start();
      names += (i == 1 ? "" : ", ") + workers_.back()->text();
    }
    screen_.line("started " + names);
  }

  // Looks until `value()` has reached `goal`.
  template <class Value>
  void await(const std::string& what, std::int64_t goal, std::int64_t all, const Value& value) {
    std::int64_t last = -1;
    auto moved = steady_clock::now();
    for (;;) {
      const std::int64_t now = value();
      screen_.progress(what, now, all);
      if (now >= goal) return;
      if (now != last) moved = steady_clock::now();
      last = now;
      if (steady_clock::now() - moved > kStandstillTimeout)
        give_up(what + " stand at " + grouped(now));
      for (const auto& worker : workers_) worker->expect_running(kDemoLook);
    }
  }

  void await_payments(std::int64_t goal) {
    await("payments booked", goal, payments(), [this] { return ledger_->payments(); });
  }

  void await_no_lag() {
    await("offsets committed to Kafka", messages(), messages(),
          [this] { return sum(broker_->committed()); });
    screen_.line("the group's lag is 0");
  }

  [[noreturn]] void give_up(const std::string& why) {
    std::string logs;
    for (const auto& worker : workers_)
      logs += "\nthe log of " + worker->text() + " ends with\n" + worker->last_lines();
    throw Stop(kFailed, why + " since " + std::to_string(kStandstillTimeout.count()) + " s" + logs);
  }

  DemoProcess& kill_one() {
    const DemoOwner owner = ledger_->owner_of_most();
    const auto found = std::ranges::find_if(
        workers_, [&](const auto& worker) { return worker->name() == owner.worker; });
    DemoProcess& worker = found != workers_.end() ? **found : *workers_.front();
    DemoUnfinished unfinished;
    for (int i = 0; i < kAims && unfinished.open_transactions == 0; ++i) {
      worker.thaw();
      worker.expect_running(kAim);
      worker.freeze();
      unfinished = ledger_->unfinished(worker.name());
    }
    const std::int64_t booked = ledger_->payments();
    worker.kill();
    screen_.alarm("SIGKILL for " + worker.text() + ", owner of " +
                  std::to_string(owner.partitions) + " partitions, at " + grouped(booked) + " of " +
                  grouped(payments()) + " payments");
    screen_.detail(grouped(unfinished.open_transactions) +
                   " messages in flight: their transactions were open, PostgreSQL rolls them back");
    screen_.detail(grouped(unfinished.uncheckpointed) +
                   " payments committed beyond the checkpoint: their messages come again");
    return worker;
  }

  bool stop_workers() {
    bool clean = true;
    std::string exits;
    for (const auto& worker : workers_) worker->terminate();
    for (const auto& worker : workers_) {
      const auto exit = worker->wait(kShutdown);
      clean = clean && exit && exit->success();
      exits += (exits.empty() ? "" : ", ") + worker->text() + ": " +
               (exit ? exit->text() : "still there");
    }
    screen_.line("SIGTERM for all: " + exits);
    return clean;
  }

  bool prove();
  void stay();

  const DemoOptions options_;
  const DemoPlan plan_;
  DemoScreen screen_;
  sandbox::TemporaryFolder folder_{"demo"};
  std::unique_ptr<sandbox::PostgresServer> postgres_;
  std::unique_ptr<DemoLedger> ledger_;
  std::unique_ptr<DemoBroker> broker_;
  std::vector<std::unique_ptr<DemoProcess>> workers_;
};

// Every claim is checked against what was sent, not against what hapax reports of itself.
bool Demo::prove() {
  std::int64_t missing = 0, twice = 0, wrong = 0, booked = 0;
  auto amounts = ledger_->amounts();
  for (const auto& [id, amount] : plan_.ledger) {
    const auto found = amounts.find(id);
    if (found == amounts.end()) {
      ++missing;
      continue;
    }
    twice += found->second.size() > 1;
    wrong += found->second.front() != amount;
    for (const std::int64_t each : found->second) booked += each;
    amounts.erase(found);
  }
  const auto letters = ledger_->dead_letters();
  const auto letter = [&](const char* reason) {
    const auto found = letters.find(reason);
    return found == letters.end() ? 0 : found->second;
  };
  const auto drifted = static_cast<std::int64_t>(plan_.drifted);
  const auto poisonous = static_cast<std::int64_t>(plan_.malformed + plan_.negative);
  const auto ends = broker_->ends();

  screen_.title("\nIs it exact?");
  bool exact = true;
  const auto fact = [&](bool holds, const char* claim, const std::string& numbers) {
    exact = screen_.fact(holds, claim, numbers) && exact;
  };
  fact(missing == 0 && twice == 0 && wrong == 0 && amounts.empty(), "every payment is booked once",
       grouped(payments()) + " sent, " + grouped(missing) + " missing, " + grouped(twice) +
           " twice, " + grouped(wrong + static_cast<std::int64_t>(amounts.size())) + " wrong");
  fact(booked == plan_.sum, "the ledger's sum is what was sent",
       money(booked) + " of " + money(plan_.sum));
  fact(ledger_->keys("completed") == payments() && ledger_->keys("failed") == poisonous,
       "each key is settled",
       grouped(ledger_->keys("completed")) + " completed, " + grouped(ledger_->keys("failed")) +
           " failed");
  fact(letters.size() == 2 && letter("payload_drift") == drifted && letter("rejected") == poisonous,
       "what must not take effect is kept aside",
       "dead letters: " + grouped(letter("payload_drift")) + " payload_drift, " +
           grouped(letter("rejected")) + " rejected");
  fact(ledger_->checkpoints() == ends && broker_->committed() == ends && sum(ends) == messages(),
       "no message is skipped or left over",
       grouped(sum(ends)) + " messages: checkpoints and Kafka's offsets are at the ends");
  fact(ledger_->halts() == 0, "nothing is halted", grouped(ledger_->halts()) + " halts");
  return exact;
}

// To look around with psql and hapax's other commands.
void Demo::stay() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  screen_.title("\nPostgreSQL and the broker stay until Ctrl-C:");
  screen_.detail("psql " + postgres_->url("demo"));
  screen_.detail("configurations and logs of the workers: " + folder_.path().string());
  int number = 0;
  sigwait(&signals, &number);
}

}  // namespace

void add_demo(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "demo", "Show it on this machine: payments, duplicates, poison and a worker killed half-way");
  const auto options = std::make_shared<DemoOptions>();
  command->add_option("--messages", options->messages, "How many messages to send")
      ->capture_default_str()
      ->check(CLI::Range(kMinDemoMessages, kMaxDemoMessages));
  command->add_option("--workers", options->workers, "How many workers share them")
      ->capture_default_str()
      ->check(CLI::Range(1, kDemoPartitions));
  command->add_flag("--keep", options->keep,
                    "Leave PostgreSQL and the broker up until Ctrl-C, to look around");
  command->footer(
      "It needs an installed PostgreSQL server, starts one of its own and removes it at the end.\n"
      "Exit code 0 only if the ledger is exact.\n\n"
      "Example:\n  hapax demo --messages 50000 --workers 3");
  line.linked_handlers.push_back(demo_handler());
  const CLI::App* const gate = add_gate_demo(*command, line);
  command->callback([&line, options, gate] {
    if (!gate->parsed()) line.command = [options] { return Demo(*options).run(); };
  });
}

}  // namespace hapax::app
