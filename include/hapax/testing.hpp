// Tests of a handler: its messages delivered as Kafka, crashes and PostgreSQL deliver them in the
// worst case, through the same code that workers run, on a throw-away PostgreSQL. No Kafka.
//
//   hapax::testing::Harness harness(hapax::handler<Payments>("payments"),
//                                   {.config = "worker.json", .schema = {"schema.sql"}});
//   harness.expect_exactly_once({.payload = R"({"id": "p1"})",
//                                .headers = {{"idempotency-key", "p1"}}});
//
// Link hapax::testing. Any test framework will do: what is wrong is thrown. See docs/testing.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/handler.hpp"
#include "hapax/rows.hpp"

namespace hapax::testing {

// A message as a producer sends it.
struct Record {
  std::optional<std::string> payload = std::nullopt;  // nothing: a tombstone
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  std::optional<std::string> key = std::nullopt;            // Kafka's record key
  std::optional<std::int64_t> timestamp_ms = std::nullopt;  // as the producer wrote it
  std::int32_t partition = 0;
  // Where it stands in Kafka. Nothing: the harness gives each different record an offset of its
  // own, so that the same record is the same message, delivered again.
  std::optional<std::int64_t> offset = std::nullopt;

  bool operator==(const Record&) const = default;
};

enum class Result {
  completed,
  duplicate,
  failed,   // a dead letter
  skipped,  // a tombstone, by the route's policy
  waiting,  // tried, and to be tried again
  halted,   // the partition or the route stops until somebody has looked
};

// What became of a delivery.
struct Outcome {
  Result result = Result::completed;
  std::string reason = {};              // of failed, waiting, halted: one word, such as "rejected"
  std::string detail = {};              // for people: the exception's text, say
  std::string sqlstate = {};            // of PostgreSQL's last refusal
  int attempts = 0;                     // failed runs that count against retry.max_attempts
  int runs = 0;                         // how often the handler ran in this delivery
  std::chrono::milliseconds waited{0};  // delays of the retry policy; they pass at once here

  // "completed", "failed (rejected: amount_minor must be positive)".
  std::string text() const;
};

// An error of PostgreSQL's, raised by PostgreSQL itself in the handler's transaction.
struct Fault {
  static constexpr int kAtCommit = 0;

  // Such as 40001 (serialization), 40P01 (deadlock), 23505 (unique), 57014 (timeout). 57P01 ends
  // the connection.
  std::string sqlstate = "40001";
  int statement =
      kAtCommit;  // 1: instead of the handler's first sql(), write(), insert() or pqxx()
  int runs = 1;   // in the handler's first so many runs; later ones go well
};

// Where a worker dies by SIGKILL.
enum class CrashPoint {
  claimed,    // before the handler runs
  handled,    // the handler has returned, and nothing is committed
  committed,  // everything is committed, and nobody was told
};

struct Options {
  // The worker's configuration file. Its route for this handler is what is tested: key, retry
  // policy, options …; of `postgres` the timeouts count, the rest is not read.
  std::string config = {};
  // That route's topic, where the file has several routes for the handler.
  std::string topic = {};
  // Or the route itself, such as {{"key", {{"header", "id"}}}}. Topic and handler may be left out.
  nlohmann::json route = nullptr;
  // Files of SQL for the handler's tables, run in this order by the owner. The worker's role may
  // then read and write all tables in them.
  std::vector<std::string> schema = {};
  // For ${NAME} in the file, before the environment of the process.
  std::map<std::string, std::string> environment = {};
  // Columns that examine() does not compare, as "public.payments.number". Those that a sequence
  // or identity fills are never compared.
  std::vector<std::string> ignored_columns = {};
};

// What examine() found.
struct Report {
  struct Way {
    std::string name;                   // "killed after the handler returned, then delivered again"
    std::vector<std::string> problems;  // none: one effect, as after one delivery
  };
  Outcome once;                      // delivered once
  std::vector<std::string> effects;  // the tables that this changed: "public.payments"
  std::vector<Way> ways;
  // Columns that differ between two deliveries that went well, so are not compared: now(), random
  // values. Only one run's values are ever committed, so this breaks no promise.
  std::vector<std::string> varying;

  bool passed() const;
  std::string text() const;  // for people, several lines
};

// Thrown by expect_exactly_once; what() is the report's text.
class NotExactlyOnce : public std::runtime_error {
 public:
  explicit NotExactlyOnce(Report report)
      : std::runtime_error(report.text()), report_(std::move(report)) {}
  const Report& report() const { return report_; }

 private:
  Report report_;
};

// A handler, its route and a database of its own. The first of a process starts a PostgreSQL,
// about a second, which all others share and which ends with the process.
//
// Deliveries go to one worker's lane: the same instance of the handler and the same session, until
// restart(), a crash or examine(). hapax's retry policy decides; its delays pass at once.
//
// Thread safety: none, and all of a process on one thread, the first one: PostgreSQL ends with the
// thread that started it.
class Harness {
 public:
  // Throws: std::runtime_error with one sentence on what is wrong and how to mend it (no PostgreSQL
  //   on this machine, a mistake in the configuration, no such route, SQL that fails); what
  //   on_start throws. Blocks: about 0.1 s; the first one of a process about 1 s.
  Harness(HandlerFactory handler, Options options);
  ~Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  // Delivers it and does what a worker does, until the message is settled or halts; `waiting` where
  // it does neither in a hundred runs. Delivered again it is the same message at the same offset.
  // Throws: std::invalid_argument where the fault is none. Blocks: as the handler does.
  Outcome deliver(const Record& record);
  Outcome deliver(const Record& record, const Fault& fault);

  // One run only: `waiting` where a worker would try again.
  Outcome attempt(const Record& record);
  Outcome attempt(const Record& record, const Fault& fault);

  // The producer sends it again: the same record at a new offset.
  Outcome resend(const Record& record);

  // Delivers it to so many workers at the same moment, as after a rebalance that one of them
  // missed. One outcome each, in no order. Precondition: the handler's instances share nothing, as
  // in a worker with several lanes.
  std::vector<Outcome> deliver_in_parallel(const Record& record, int workers = 4);

  // Delivers it to another worker process, which dies there. What it leaves in memory dies too.
  // Throws: std::runtime_error that says how the message ended where it did not come so far.
  void crash_at(CrashPoint point, const Record& record);

  // A new instance of the handler on a new session: what the next worker process would have.
  void restart();

  // Delivers the record in every way there is, each from where the database stands now: again, in
  // parallel, killed at each point, with SQL errors at each of its first six statements and at
  // COMMIT; and compares all tables with those after one delivery. So it also looks at a message
  // that is to become a dead letter. Afterwards the database is as after one delivery. Throws:
  // std::runtime_error where it cannot begin. Blocks: about two seconds.
  Report examine(const Record& record);

  // examine(), of a message that has an effect.
  // Throws: NotExactlyOnce where there is a problem, and where the message does not complete or
  //   changes no table: nothing would be compared. What examine() throws.
  void expect_exactly_once(const Record& record);

  // Runs one statement as the owner of the tables, commits, and returns its rows: to arrange and to
  // look at what is there. hapax's own tables are in schema hapax.
  // Throws: SqlError.
  template <class... Values>
  Rows sql(std::string_view text, const Values&... values) {
    return run(text, {Parameter(values)...});
  }

  // What the handler has left in its session after a message so far: settings, temporary tables,
  // advisory locks, LISTEN, prepared statements, cursors. hapax clears it before the next message,
  // at the price of a round trip, where the SQL that the handler sends shows it. What a function in
  // the database does inside, it does not see: there, call set_config with is_local = true, and
  // take advisory locks of the transaction. In a batch the next message sees all of it.
  const std::vector<std::string>& session_leaks() const;

  // How the worker connects: for a test that the handler does without.
  std::string url() const;

  class Implementation;  // opaque

 private:
  Rows run(std::string_view text, std::vector<Parameter> values);
  std::unique_ptr<Implementation> implementation_;
};

const char* name_of(Result result);
const char* name_of(CrashPoint point);
std::ostream& operator<<(std::ostream& out, Result result);
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace hapax::testing
