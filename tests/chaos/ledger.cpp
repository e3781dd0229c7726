// The handler of the chaos runs. It books an operation in a ledger and in a balance. The ledger has
// no unique constraint, so a double effect shows. If only one of the two is written, half an effect
// shows.
//
// The payload's "do" names what else an operation does. Each run first writes a line into the
// folder that the route's options name. This is the checker's own record of what ran, which no
// transaction takes back. Files there also tell what happened once already, and which of the
// operators' repairs were done.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <hapax/plugin.hpp>
#include <pqxx/pqxx>

namespace {

using hapax::Context;
using hapax::Message;
using nlohmann::json;

// True for the first who asks, in all processes.
bool is_first(const std::filesystem::path& mark) {
  const int file = open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return false;
  close(file);
  return true;
}

class Ledger final : public hapax::Handler {
 public:
  void on_start(const hapax::Setup& setup) override {
    folder_ = setup.options().at("folder").get<std::string>();
    shapes_ = setup.options().value("shapes", false);
    publish_ = setup.options().value("publish", std::string());
  }

  void handle(const Message& message, Context& context) override {
    const json order = message.json();
    note(message, order, "began");
    try {
      if (order.contains("script")) {
        follow(message, order, context);
      } else {
        act(message, order, context);
        book(message, order, context);
      }
      if (order.at("do") == "swallow" && is_first(mark(order, 1))) swallow_an_error(context);
    } catch (...) {
      note(message, order, "threw");
      throw;
    }
    note(message, order, "ended");
  }

 private:
  void act(const Message& message, const json& order, Context& context) const {
    if (std::filesystem::exists(folder_ / "broken-deploy"))
      throw std::runtime_error("this version fails always");
    const std::string deed = order.at("do");
    const auto first = [&](int nth) { return is_first(mark(order, nth)); };
    if (deed == "reject") throw hapax::Reject("told to reject");
    if (deed == "throw") throw std::runtime_error("told to fail");
    if (deed == "until mended" && !std::filesystem::exists(folder_ / "mended"))
      throw std::runtime_error("not mended yet");
    if (deed == "fails elsewhere" && message.partition() != order.at("home"))
      throw std::runtime_error("not here");
    if (deed == "slow" || deed == "fails elsewhere") context.sql("SELECT pg_sleep(0.3)");
    if (deed == "flaky" && (first(1) || first(2))) throw hapax::Retry("not yet");
    if (deed == "kill" || (deed == "kill once" && first(1))) std::raise(SIGKILL);
    if (deed == "pin" && age_of(message) < std::chrono::seconds(order.at("seconds").get<int>()))
      throw hapax::Retry("not old enough");
  }

  static std::chrono::milliseconds age_of(const Message& message) {
    using Time = std::chrono::sys_time<std::chrono::milliseconds>;
    return std::chrono::time_point_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now()) -
           message.timestamp().value_or(Time());
  }

  // A hostile handler: the message holds its steps. Each is "book", an exception, or SQL; "raw:"
  // before SQL sends it without preparing it, "try:" swallows its error.
  void follow(const Message& message, const json& order, Context& context) const {
    if (std::filesystem::exists(folder_ / "polite")) throw hapax::Reject("made polite");
    for (const std::string step : order.at("script")) {
      if (step == "book")
        book(message, order, context);
      else if (step == "throw")
        throw std::runtime_error("told to fail");
      else if (step == "throw a number")
        throw 17;
      else if (step == "reject")
        throw hapax::Reject("told to reject");
      else if (step.starts_with("raw:"))
        context.pqxx().exec(step.substr(4));
      else if (step.starts_with("try:"))
        swallow(step.substr(4), context);
      else
        context.sql(step);
    }
  }

  static void swallow(const std::string& sql, Context& context) {
    try {
      context.sql(sql);
    } catch (const hapax::SqlError&) {
    }
  }

  // As a careless handler does: the transaction is aborted, and the handler hides that.
  static void swallow_an_error(Context& context) { swallow("SELECT 1 / 0", context); }

  void book(const Message& message, const json& order, Context& context) const {
    if (shapes_) shape(order, context);
    context.write("UPDATE balances SET amount = amount + $2 WHERE account = $1",
                  order.at("account"), order.at("amount"));
    context.write(
        "INSERT INTO ledger (op, account, amount, payload, topic, part, kafka_offset) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7)",
        order.at("op"), order.at("account"), order.at("amount"), order.at("payload"),
        message.topic(), message.partition(), message.offset());
    if (!publish_.empty()) publish(order, context);
  }

  // The run's name tells which transaction published: one that PostgreSQL lost, or the one that
  // stands.
  void publish(const json& order, Context& context) const {
    static std::atomic<int> runs = 0;
    const std::string run = std::to_string(getpid()) + '.' + std::to_string(++runs) + '.' +
                            std::to_string(std::chrono::system_clock::now().time_since_epoch() /
                                           std::chrono::microseconds(1));
    context.write("INSERT INTO booked (op, account, run) VALUES ($1, $2, $3)", order.at("op"),
                  order.at("account"), run);
    const json record = {{"op", order.at("op")}, {"run", run}};
    context.publish(publish_, {.key = order.at("account").get<std::string>(),
                               .payload = record.dump(),
                               .name = "booked"});
  }

  // A table whose columns change while it is written. The handler's next version knows what its
  // operator has prepared for it.
  void shape(const json& order, Context& context) const {
    const int amount = order.at("amount");
    const bool text = std::filesystem::exists(folder_ / "reference-is-text");
    context.insert("shapes", {"op", "kind", "reference", "ratio"}, order.at("op"),
                   amount < 500 ? "small" : "large", (text ? "k" : "") + std::to_string(amount),
                   amount / 7.0);
    if (std::filesystem::exists(folder_ / "has-note"))
      context.write("UPDATE shapes SET note = $2 WHERE op = $1", order.at("op"), "noted");
  }

  std::filesystem::path mark(const json& order, int nth) const {
    return folder_ / "marks" / (order.at("op").get<std::string>() + '.' + std::to_string(nth));
  }

  // One write, so that a line is whole or not there.
  void note(const Message& message, const json& order, const char* what) const {
    const std::string line = order.at("op").get<std::string>() + ' ' +
                             std::to_string(message.partition()) + ' ' +
                             std::to_string(message.offset()) + ' ' + what + '\n';
    const std::string file = folder_ / "runs" / std::to_string(getpid());
    const int runs = open(file.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0666);
    if (runs < 0 || write(runs, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("cannot write " + file);
    close(runs);
  }

  std::filesystem::path folder_;
  bool shapes_ = false;
  std::string publish_;  // the topic; "": none
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Ledger>("ledger", "1"))
