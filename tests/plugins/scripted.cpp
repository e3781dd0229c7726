// Handlers that do what their messages ask for, for the tests that run whole workers.
//
// Both book a payment as examples/payments does. Before that, "scripted" does what the payload's
// "do" asks for. It also writes each run into the file that the option "journal" names. "answering"
// stores a result and books an answer for each duplicate. "paying" also publishes a receipt to the
// topic that the option "receipts" names, and "receiving" books that receipt. "publishing" also
// publishes the records of the payload's "publish".
#include <hapax/outside.hpp>
#include <hapax/plugin.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

namespace {

using hapax::Context;
using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;

void book(const json& payment, Context& context) {
  context.write("INSERT INTO payments (id, account, amount_minor) VALUES ($1, $2, $3)",
                payment.at("id"), payment.at("account"), payment.at("amount_minor"));
}

void book_payment(const json& payment, Context& context) { book(payment, context); }

// While a test holds this advisory lock, the handler waits.
constexpr std::int64_t kLock = 1;

void hold(const json&, Context& context) {
  context.sql("SELECT pg_advisory_xact_lock_shared($1)", kLock);
}

void fail_while_locked(const json&, Context& context) {
  if (!context.sql("SELECT pg_try_advisory_xact_lock_shared($1)", kLock)[0][0].as<bool>())
    throw std::runtime_error("the test holds the lock");
}

// Rejects unless "sequence" is one more than the account's last.
void check_sequence(const json& payment, Context& context) {
  const auto rows =
      context.sql("SELECT count(*) FROM payments WHERE account = $1", payment.at("account"));
  const auto booked = rows[0][0].as<std::int64_t>();
  if (payment.at("sequence") != booked)
    throw hapax::Reject("out of order: this is " + payment.at("sequence").dump() + ", booked are " +
                        std::to_string(booked));
}

void swallow_an_error(const json&, Context& context) {
  try {
    context.sql("SELECT 1 / 0");
  } catch (const hapax::SqlError&) {
    // As a careless handler does.
  }
}

// The sequence counts the runs, as no rollback takes it back.
void end_the_transaction(const json& payment, Context& context) {
  hold(payment, context);
  context.sql("SELECT nextval('payments_nr_seq')");
  context.sql("COMMIT");
}

using Deed = std::function<void(const json& payment, Context& context)>;

const std::map<std::string, Deed>& deeds() {
  static const std::map<std::string, Deed> all = {
      {"reject", [](const json& payment,
                    Context&) { throw hapax::Reject(payment.value("why", "told to reject")); }},
      {"fail", [](const json&, Context&) { throw std::runtime_error("told to fail"); }},
      {"wait", [](const json&, Context&) { throw hapax::Retry("told to wait", hours(1)); }},
      {"throw 42", [](const json&, Context&) { throw 42; }},
      {"divide by 0", [](const json&, Context& context) { context.sql("SELECT 1 / 0"); }},
      {"swallow", swallow_an_error},
      {"large result",
       [](const json&, Context& context) { context.result(std::string(1 << 20, 'x')); }},
      {"end backend",
       [](const json&, Context& context) {
         context.sql("SELECT pg_terminate_backend(pg_backend_pid())");
       }},
      {"doze",  // past idle_in_transaction_timeout
       [](const json& payment, Context&) {
         std::this_thread::sleep_for(milliseconds(payment.at("ms").get<int>()));
       }},
      {"sleep",
       [](const json& payment, Context& context) {
         context.sql("SELECT pg_sleep($1)", payment.at("seconds"));
       }},
      {"next", check_sequence},
      {"hold", hold},
      {"lock",
       [](const json& payment, Context& context) {
         context.sql("SELECT pg_advisory_xact_lock($1)", kLock);
         std::this_thread::sleep_for(milliseconds(payment.at("ms").get<int>()));
       }},
      {"fail while locked", fail_while_locked},
      {"commit", end_the_transaction},
      {"segfault", [](const json&, Context&) { std::raise(SIGSEGV); }},
      {"abort", [](const json&, Context&) { std::abort(); }},
      {"exit", [](const json&, Context&) { std::exit(0); }},
      {"hang",
       [](const json&, Context&) {
         for (;;) std::this_thread::sleep_for(hours(1));
       }},
  };
  return all;
}

class Scripted final : public hapax::Handler {
 public:
  void on_start(const hapax::Setup& setup) override {
    journal_ = setup.options().value("journal", "");
  }

  void handle(const hapax::Message& message, Context& context) override {
    const auto payment = message.json();
    if (!journal_.empty()) note(payment);
    if (payment.contains("do")) deeds().at(payment.at("do"))(payment, context);
    book(payment, context);
  }

 private:
  // No transaction takes it back. One write, so that lines of all lanes and workers are whole.
  void note(const json& payment) const {
    std::ofstream(journal_, std::ios::app) << payment.at("id").get<std::string>() + '\n';
  }

  std::string journal_;
};

class Answering final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, Context& context) override {
    const auto payment = message.json();
    book(payment, context);
    if (payment.value("answer", true)) context.result({{"booked", payment.at("id")}});
  }

  bool wants_duplicates() const override { return true; }

  void on_duplicate(const hapax::Message& message, const hapax::StoredResult& stored,
                    Context& context) override {
    json payment = message.json();
    payment["account"] = "answers";
    payment["id"] = stored.text() ? stored.json().at("booked") : json("nothing stored");
    book(payment, context);
  }
};

// The lock serialises payments of one account, which come by several partitions: "sequence" counts
// them in the order of their transactions.
class Paying final : public hapax::Handler {
 public:
  void on_start(const hapax::Setup& setup) override { receipts_ = setup.options().at("receipts"); }

  void handle(const hapax::Message& message, Context& context) override {
    json receipt = message.json();
    const auto account = receipt.at("account").get<std::string>();
    context.sql("SELECT pg_advisory_xact_lock(hashtext($1))", account);
    const auto rows = context.sql("SELECT count(*) FROM payments WHERE account = $1", account);
    book(receipt, context);
    receipt["sequence"] = rows[0][0].as<std::int64_t>();
    receipt["padding"] = std::string(receipt.value("padding", 0U), 'x');
    context.publish(receipts_, {.key = account, .payload = receipt.dump(), .name = "receipt"});
  }

 private:
  std::string receipts_;
};

// "key" and "value" may be missing; "bytes": a value of that length; header values are arrays of
// byte values, or null.
class Publishing final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, Context& context) override {
    const auto payment = message.json();
    book(payment, context);
    for (const json& wanted : payment.value("publish", json::array())) {
      hapax::Outgoing record;
      if (wanted.contains("key")) record.key = wanted["key"].get<std::string>();
      if (wanted.contains("value")) record.payload = wanted["value"].get<std::string>();
      if (wanted.contains("bytes")) record.payload = std::string(wanted["bytes"].get<int>(), 'x');
      for (const json& header : wanted.value("headers", json::array())) {
        std::optional<std::string> value;
        if (!header[1].is_null()) {
          value.emplace();
          for (const json& byte : header[1]) *value += static_cast<char>(byte.get<int>());
        }
        record.headers.emplace_back(header[0].get<std::string>(), std::move(value));
      }
      context.publish(wanted.at("topic").get<std::string>(), std::move(record));
    }
  }
};

class Receiving final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, Context& context) override {
    const auto receipt = message.json();
    context.write(
        "INSERT INTO receipts (id, account, amount_minor, sequence) VALUES ($1, $2, $3, $4)",
        receipt.at("id"), receipt.at("account"), receipt.at("amount_minor"),
        receipt.at("sequence"));
  }
};

// Makes no real call. A payment's "call" decides how the call ends. Its booking does what "do" asks
// for.
class Calling final : public hapax::OutsideHandler {
 public:
  json call(const hapax::Message& message, const hapax::Call&) override {
    const json payment = message.json();
    if (payment.value("call", "") == "hang") std::this_thread::sleep_for(hours(1));
    return {{"answer", payment.at("id")}};
  }
  void book(const hapax::Message& message, const json& answer, Context& context) override {
    const json payment = message.json();
    if (answer.at("answer") != payment.at("id")) throw std::logic_error("another one's answer");
    if (payment.value("book", "") == "reject") throw hapax::Reject("the booking says no");
    if (payment.value("book", "") == "fail") throw std::runtime_error("the booking fails");
    book_payment(payment, context);
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Scripted>("scripted", "1"), hapax::handler<Answering>("answering", "1"),
             hapax::handler<Paying>("paying", "1"), hapax::handler<Receiving>("receiving", "1"),
             hapax::handler<Publishing>("publishing", "1"), hapax::handler<Calling>("calling", "1"))
