// Tests of a handler. The harness delivers messages as Kafka does in the worst case, with crashes
// and errors of PostgreSQL, through the code that workers run. It uses a throw-away PostgreSQL and
// no Kafka.
//
//   hapax::testing::Harness harness(hapax::handler<Payments>("payments"),
//                                   {.config = "worker.json", .schema = {"schema.sql"}});
//   harness.expect_exactly_once({.payload = R"({"id": "p1"})",
//                                .headers = {{"idempotency-key", "p1"}}});
//
// For a handler that calls to the outside, use expect_no_blind_repeat, with a double of the other
// side.
//
// Link hapax::testing. Any test framework will do, because the harness throws what is wrong. See
// docs/testing.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  std::optional<std::string> key = std::nullopt;  // Kafka's record key
  // In milliseconds since 1970-01-01 UTC; `timestamp_type` tells who wrote it.
  std::optional<std::int64_t> timestamp_ms = std::nullopt;
  std::int32_t partition = 0;
  // Its offset in Kafka. Nothing: the harness gives each different record an offset of its own, so
  // that the same record is the same message, delivered again.
  std::optional<std::int64_t> offset = std::nullopt;
  TimestampType timestamp_type = TimestampType::create_time;  // of a timestamp that is there

  bool operator==(const Record&) const = default;
};

// The records in a file that `hapax record` or `hapax dead export` wrote, by partition and offset.
// `topic`: only those of this topic, if the file holds several.
// Throws: std::runtime_error with the line and what is wrong in it, if there is none, or if there
//   are several topics and `topic` is empty. A dead letter that was kept without its message is
//   wrong: it would look like a tombstone. So are letters of two generations of one topic, because
//   their offsets mean different messages.
std::vector<Record> read_records(const std::string& file, const std::string& topic = {});

// The handler `name` of a plugin, such as the build that runs in production.
// Throws: std::runtime_error if it is no plugin for this hapax, or has no such handler.
HandlerFactory plugin_handler(const std::string& path, const std::string& name);

// A record that a handler has published. hapax adds its own two headers when it sends the record:
// `idempotency-key` with this key, and `hapax-origin`.
struct Published {
  std::string topic;
  std::optional<std::string> key, payload;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::string idempotency_key;

  bool operator==(const Published&) const = default;
};

enum class Result {
  completed,
  duplicate,
  failed,   // a dead letter
  skipped,  // a tombstone, by the route's policy
  waiting,  // tried, and to be tried again
  halted,   // the partition or the route stops until an operator decides
};

// What became of a delivery.
struct Outcome {
  Result result = Result::completed;
  std::string reason = {};              // of failed, waiting, halted: one word, such as "rejected"
  std::string detail = {};              // for people, such as the exception's text
  std::string sqlstate = {};            // of PostgreSQL's last refusal
  int attempts = 0;                     // failed runs that count against retry.max_attempts
  int runs = 0;                         // how often the handler ran, or booked, in this delivery
  int calls = 0;                        // how often an outside handler called in it
  std::chrono::milliseconds waited{0};  // delays of the retry policy; they pass at once here

  // "completed", "failed (rejected: amount_minor must be positive)".
  std::string text() const;
};

// An SQL error that PostgreSQL itself raises in the handler's transaction.
struct Fault {
  static constexpr int kAtCommit = 0;

  // Such as 40001 (serialization), 40P01 (deadlock), 23505 (unique), 57014 (timeout). 57P01 ends
  // the connection.
  std::string sqlstate = "40001";
  int statement =
      kAtCommit;  // 1: instead of the handler's first sql(), write(), insert() or pqxx()
  int runs = 1;   // in this many first runs of the handler; later runs go well
};

// The point at which a worker dies by SIGKILL.
enum class CrashPoint {
  claimed,    // before the handler runs
  handled,    // the handler has returned, and nothing is committed
  committed,  // everything is committed, and no offset has moved
};

struct Options {
  // The worker's configuration file. The harness tests its route for this handler: key, retry
  // policy, options …. It refuses a file that a worker refuses. It connects neither to
  // its Kafka nor to its PostgreSQL, so their variables need not be set, nor those in the options
  // of other handlers. But it asks the route's schema registry.
  std::string config = {};
  // That route's topic, if the file has several routes for the handler.
  std::string topic = {};
  // Or the route itself, such as {{"key", {{"header", "id"}}}}. Topic and handler may be left out.
  nlohmann::json route = nullptr;
  // SQL files for the handler's tables. The owner runs them in this order. The worker's role may
  // then read and write all tables in them; if the route declares its tables, only as declared.
  std::vector<std::string> schema = {};
  // The SQL file that makes the role of the workers and grants it rights. The harness runs it after
  // `schema` and takes it back. It refuses a file that grants to no role all the rights that the
  // route's `tables` declares.
  std::string worker_role = {};
  // Topics that the handler may publish to, beside `publish.topics` of the file. Each takes records
  // of 1 MB here.
  std::vector<std::string> publish_topics = {};
  // Values for ${NAME} in the file; they win over the environment of the process.
  std::map<std::string, std::string> environment = {};
  // Columns that examine() does not compare, such as "public.payments.token", because they may
  // differ between two deliveries. Times, uuids and numbers of sequences need not be named.
  std::vector<std::string> ignored_columns = {};
  // Tables that on_duplicate may change, such as "public.replies". examine() does not compare them
  // once the message has been delivered again.
  std::vector<std::string> duplicate_tables = {};
};

// A double of the other side that an outside handler calls. The test makes it, and hands its
// address to the handler. It must be in this process, or a server.
struct OtherSide {
  // How many effects it has had since `forget`, such as the charges of a payment gateway.
  std::function<std::int64_t()> effects;
  // Begins again: without an effect, and without the keys that it has seen.
  std::function<void()> forget;
  // The harness calls both on the thread of the test. What they throw comes out of examine_calls().
};

// What examine() or examine_calls() found.
struct Report {
  struct Way {
    std::string name;                   // "killed after the handler returned, then delivered again"
    std::vector<std::string> problems;  // none: one effect, as after one delivery
  };
  Outcome once;  // delivered once
  // The tables that this changed: "public.payments"; "hapax.outbox" if it published records.
  std::vector<std::string> effects;
  std::vector<Way> ways;
  // Columns of dates and times in `effects`, which are not compared: now() differs between two good
  // deliveries. Whether there is a time is compared.
  std::vector<std::string> varying;

  bool passed() const;
  std::string text() const;  // for people, several lines
};

// expect_exactly_once and expect_no_blind_repeat throw it; what() is the report's text.
class NotExactlyOnce : public std::runtime_error {
 public:
  explicit NotExactlyOnce(Report report)
      : std::runtime_error(report.text()), report_(std::move(report)) {}
  const Report& report() const { return report_; }

 private:
  Report report_;
};

// A handler, its route and a database of its own. The first harness of a process starts a
// PostgreSQL, which takes about a second. All others share it, and it ends with the process.
//
// Deliveries go to one worker's lane: the same instance of the handler and the same session, until
// restart(), a crash or examine(). hapax's retry policy decides; its delays pass at once.
//
// Thread safety: none. Use all harnesses of a process on the thread that made the first one,
// because PostgreSQL ends with the thread that started it.
//
// Beside what each function names, a function throws SqlError or std::runtime_error if the
// throw-away PostgreSQL is gone.
class Harness {
 public:
  // Throws: std::runtime_error with one sentence on what is wrong and how to fix it. Examples: no
  //   PostgreSQL on this machine, a mistake in the configuration, no such route, SQL that fails.
  //   Also what on_start throws.
  // Blocks: about 0.1 s; the first one of a process about 1 s.
  Harness(HandlerFactory handler, Options options);
  ~Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  // Delivers the record and does what a worker does, until the message is settled or halts. If it
  // does neither in a hundred runs, the result is `waiting`. A second call delivers the same
  // message at the same offset. What the handler throws is in the outcome.
  // Throws: std::invalid_argument if the fault is not valid.
  // Blocks: as the handler does.
  Outcome deliver(const Record& record);
  Outcome deliver(const Record& record, const Fault& fault);

  // Runs it once only. The result is `waiting` if a worker would try again.
  // Throws, Blocks: as deliver().
  Outcome attempt(const Record& record);
  Outcome attempt(const Record& record, const Fault& fault);

  // Delivers the same record at a new offset, as if the producer had sent it again.
  // Throws, Blocks: as deliver().
  Outcome resend(const Record& record);

  // Delivers it to this many workers at the same moment, as after a rebalance that one of them
  // missed. Returns one outcome for each, in no order.
  // Precondition: the handler's instances share nothing, as in a worker with several lanes.
  // Throws: the first error that ends a worker, such as a connection that breaks in a call. Also
  //   what on_start throws.
  // Blocks: as the handler does.
  std::vector<Outcome> deliver_in_parallel(const Record& record, int workers = 4);

  // Delivers it to another worker process, which dies at that point with everything in its memory.
  // Throws: std::runtime_error if the message ended before that point; the text tells how.
  //   std::logic_error if the handler calls to the outside: a child process dies, and the double
  //   would not see its call.
  // Blocks: at most a minute.
  void crash_at(CrashPoint point, const Record& record);

  // Delivers each record in turn, and returns what became of each, in the same order.
  // Throws, Blocks: as deliver().
  std::vector<Outcome> replay(const std::vector<Record>& records);

  // A shadow run: delivers each record to this handler and to the one of `other`. It compares what
  // becomes of the record, all tables and all published records. Tables are compared a hundred
  // times at most, and no more after the first difference. Returns a sentence for each difference;
  // none: both handlers do the same with these records. Times, new uuids, new numbers of sequences
  // and Options::ignored_columns of this harness may differ, as in examine(). Throws: as deliver().
  // Blocks: as both handlers do.
  std::vector<std::string> compare(Harness& other, const std::vector<Record>& records);

  // All records that messages have published so far, in the order in which a relay would send them.
  // Nothing is sent here: there is no Kafka.
  std::vector<Published> published();

  // Makes a new instance of the handler on a new session, as the next worker process would.
  // Throws: what on_start throws.
  void restart();

  // Delivers the record in every way there is: again, in parallel, and killed at each point. It
  // also injects SQL errors at each of the first six statements and at COMMIT. Each way starts from
  // the present state of the database. It compares all tables and all published records with those
  // after one delivery, so it can also examine a message that becomes a dead letter. Afterwards the
  // database is as after one delivery.
  // Throws: std::runtime_error if it cannot begin; std::logic_error if the handler calls to the
  //   outside.
  // Blocks: about two seconds.
  Report examine(const Record& record);

  // Calls examine() for a message that has an effect.
  // Throws: NotExactlyOnce if there is a problem, or if the message does not complete. Also if it
  //   neither changes a table nor publishes, because then nothing would be compared. Also what
  //   examine() throws.
  void expect_exactly_once(const Record& record);

  // Delivers two different messages at once: the handler of the second one runs while the first
  // one's transaction is open, and the other way round. Compares all tables and all published
  // records with those after one message behind the other, in either order. So it finds a handler
  // that selects a value and writes what it computed from it. Afterwards the database is as after
  // both messages. A worker does not run messages of one record key at once, unless
  // `worker.ordering` is `none`.
  // Throws: NotExactlyOnce if there is a problem. Also if the first one does not complete or has no
  //   effect, or if both have one key. std::runtime_error if it cannot begin; std::logic_error if
  //   the handler calls to the outside.
  // Blocks: about half a second.
  void expect_no_lost_update(const Record& first, const Record& second);

  // Delivers the record of an outside handler, and breaks the call off at each point from before it
  // to its booking. `routes[].outside.repeat` decides what must follow. For `never` that is
  // `outcome_unknown` without another call. Else it is the same effects at the other side, and the
  // same tables, as after one call. Leases and delays pass at once. That a process dies in its call
  // is only simulated: the handler's instances are made again, and other memory stays. Afterwards
  // the database is as after one delivery.
  // Throws: std::logic_error if the handler is no hapax::OutsideHandler; std::runtime_error if it
  //   cannot begin.
  // Blocks: about a second, and for about ten calls.
  Report examine_calls(const Record& record, const OtherSide& other_side);

  // Calls examine_calls() for a message that has an effect at the other side.
  // Throws: NotExactlyOnce if there is a problem, if the message does not complete, or if the other
  //   side has had no effect. Also what examine_calls() throws.
  void expect_no_blind_repeat(const Record& record, const OtherSide& other_side);

  // Runs one statement as the owner of the tables, commits, and returns its rows. Use it to arrange
  // data and to look at it. hapax's own tables are in schema hapax.
  // Throws: SqlError.
  template <class... Values>
  Rows sql(std::string_view text, const Values&... values) {
    return run(text, {Parameter(values)...});
  }

  // What the handler has left in its session since the last examination began: settings, temporary
  // tables, advisory locks, LISTEN, prepared statements, cursors. If the handler's SQL shows it,
  // hapax clears it before the next message, which costs a round trip. hapax does not see what a
  // function in the database does: there, call set_config with is_local = true, and take
  // transaction-level advisory locks. In a batch the next message sees all of it.
  const std::vector<std::string>& session_leaks() const;

  // The url with which the worker connects, for tests of handlers that open connections themselves.
  std::string url() const;

  class Implementation;  // opaque

 private:
  Rows run(std::string_view text, std::vector<Parameter> values);
  std::unique_ptr<Implementation> implementation_;
};

// For messages of tests: the enumerator's name, and the texts of Outcome and Report.
const char* name_of(Result result);
const char* name_of(CrashPoint point);
std::ostream& operator<<(std::ostream& out, Result result);
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace hapax::testing
