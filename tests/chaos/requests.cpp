// The handler of the world `gate`: books a request in the ledger and answers with the name of this
// run. A gate runs it for HTTP requests, and a worker for requests that a gate accepted.
//
// The body's "do" tells what else it does. Each run writes lines into a file of its process, before
// anything else happens. No transaction takes these back.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <hapax/plugin.hpp>
#include <pqxx/pqxx>
#include <thread>

namespace {

using hapax::Context;
using hapax::Message;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

// One run of the handler.
struct Run {
  json order;
  std::string tenant;
  std::string operation;  // tenant and key
  std::string attempt;    // the client's name for its request; "": the run is a worker's
  std::string name;       // different for each run
};

class Requests final : public hapax::Handler {
 public:
  void on_start(const hapax::Setup& setup) override {
    const json options = setup.options();
    folder_ = options.at("folder").get<std::string>();
    hang_ = std::chrono::milliseconds(options.value("hang_ms", 0));
  }

  void handle(const Message& message, Context& context) override {
    const Run run = run_of(message);
    note(run, "began");
    try {
      act(run, context);
      book(message, run, context);
      respond(run, context);
      spoil(run, context);
    } catch (...) {
      note(run, "threw");
      throw;
    }
    note(run, "ended");
  }

 private:
  static Run run_of(const Message& message) {
    static std::atomic<int> runs = 0;
    Run run{.order = message.json(),
            .tenant = std::string(message.header(":tenant").value_or("")),
            .operation = {},
            .attempt = std::string(message.header("x-attempt").value_or("")),
            .name = {}};
    run.operation = run.tenant + '/' + run.order.at("op").get<std::string>();
    run.name = std::to_string(getpid()) + '.' + std::to_string(++runs) + '.' +
               std::to_string(Clock::now().time_since_epoch() / std::chrono::microseconds(1));
    return run;
  }

  // A client may write a number in another way.
  static std::int64_t number(const Run& run, const char* member) {
    return static_cast<std::int64_t>(run.order.at(member).get<double>());
  }

  static json answer(const Run& run) {
    return {{"op", run.operation},
            {"run", run.name},
            {"attempt", run.attempt},
            {"payload", number(run, "payload")}};
  }

  void act(const Run& run, Context& context) const {
    const std::string deed = run.order.at("do");
    const auto first = [&](int nth) { return is_first(run, nth); };
    if (deed == "reject") throw hapax::Reject("told to reject " + answer(run).dump());
    if (deed == "refuse") {
      context.write("UPDATE balances SET amount = amount + 1 WHERE account = $1",
                    run.order.at("account"));
      context.respond(402, {{"Content-Type", "application/json"}}, answer(run).dump());
      throw hapax::Reject("told to refuse");
    }
    if (deed == "throw") throw std::runtime_error("told to fail");
    if (deed == "until mended" && !std::filesystem::exists(folder_ / "mended"))
      throw std::runtime_error("not mended yet");
    if (deed == "slow") context.sql("SELECT pg_sleep(0.3)");
    if (deed == "flaky" && first(1)) throw std::runtime_error("told to fail at first");
    if (deed == "flaky" && first(2)) throw hapax::Retry("not yet");
    if (deed == "kill once" && first(1)) std::raise(SIGKILL);
  }

  void book(const Message& message, const Run& run, Context& context) const {
    context.write("UPDATE balances SET amount = amount + $2 WHERE account = $1",
                  run.order.at("account"), number(run, "amount"));
    context.write(
        "INSERT INTO ledger (op, account, amount, payload, topic, part, kafka_offset, run, "
        "attempt) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        run.operation, run.order.at("account"), number(run, "amount"), number(run, "payload"),
        message.topic(), message.partition(), message.offset(), run.name, run.attempt);
  }

  static void respond(const Run& run, Context& context) {
    context.respond(201,
                    {{"Content-Type", "application/json"},
                     {"Location", "/booked/" + run.name},
                     {"Set-Cookie", "run=" + run.name}},
                    answer(run).dump());
  }

  // What goes wrong when all is written.
  void spoil(const Run& run, Context& context) const {
    const std::string deed = run.order.at("do");
    if (deed == "swallow" && is_first(run, 1)) swallow_an_error(context);
    if (deed == "kill late" && is_first(run, 1)) {
      context.sql("SELECT 1");
      std::raise(SIGKILL);
    }
    if (deed == "hang" && is_first(run, 1)) {
      context.sql("SELECT 1");  // what was deferred is written
      std::this_thread::sleep_for(hang_);
    }
    if (deed == "commit") context.pqxx().exec("COMMIT");
    if (deed == "rollback") context.pqxx().exec("ROLLBACK");
  }

  // As a careless handler does: the transaction is aborted, and the handler does not tell.
  static void swallow_an_error(Context& context) {
    try {
      context.sql("SELECT 1 / 0");
    } catch (const hapax::SqlError&) {
    }
  }

  // True for the first that asks, in all processes.
  bool is_first(const Run& run, int nth) const {
    std::string name = run.operation;
    std::ranges::replace(name, '/', '.');
    const auto mark = folder_ / "marks" / (name + '.' + std::to_string(nth));
    const int file = open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) return false;
    close(file);
    return true;
  }

  // One write, so that a line is whole or not there.
  void note(const Run& run, const char* what) const {
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    const std::string line = json{{"op", run.operation},
                                  {"run", run.name},
                                  {"attempt", run.attempt},
                                  {"what", what},
                                  {"at", now}}
                                 .dump() +
                             '\n';
    const std::string file = folder_ / "runs" / std::to_string(getpid());
    const int to = open(file.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0666);
    if (to < 0 || write(to, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("cannot write " + file);
    close(to);
  }

  std::filesystem::path folder_;
  std::chrono::milliseconds hang_{0};
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Requests>("requests", "1"))
