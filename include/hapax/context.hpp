// What a handler may do inside the transaction that hapax lends it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/errors.hpp"
#include "hapax/rows.hpp"

namespace pqxx {
class dbtransaction;
}

namespace hapax {

// A Kafka record that a handler publishes. Key, payload and header values may be any bytes. A value
// that is absent is Kafka's null, which is not an empty value.
struct Outgoing {
  std::optional<std::string> key = std::nullopt;  // records of one key keep their order
  std::optional<std::string> payload = std::nullopt;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  // Names this publish among those of its message, such as "receipt"; unique in one run. The
  // record's `idempotency-key` is made from it. If it is empty, the position among the publishes
  // without a name counts. One more publish in the handler then changes the keys behind it.
  std::string name = {};
};

// What an HTTP client is answered. The body may be any bytes; see Context::respond for the bounds.
struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
};

// For hapax: what Context::key and Context::tenant return.
struct Operation {
  std::string_view key = {}, tenant = {};
};

// One open PostgreSQL transaction, lent for the length of one `handle` (or `book`, or
// `on_duplicate`). Everything written through it commits together with the message's idempotency
// key, or not at all.
//
// A handler must not COMMIT, ROLLBACK, SET CONSTRAINTS or RESET ALL. If it does, the seal refuses
// the completion and the route halts, because part of an effect may stand alone. Savepoints are
// allowed.
//
// The next message on this connection does not see what a handler left there. hapax undoes
// settings, roles, temporary tables, session locks, LISTEN, prepared statements and the last values
// of sequences, in a round trip of its own. It omits this round trip only if every statement was a
// plain query that called only PostgreSQL's own functions. Plain are SELECT without INTO, INSERT,
// UPDATE, DELETE, MERGE and VALUES. Messages of one batch share the connection's state.
//
// Isolation: READ COMMITTED, and messages of other order keys run at the same time. A handler that
// selects a value and writes what it computed from it can lose their updates. Write
// `SET balance = balance - $1`, or read with `SELECT … FOR UPDATE`. See docs/guarantees.md.
//
// Not undone:
// - Plain queries move sequences, so lastval and currval may give the number of an earlier message.
//   Use INSERT … RETURNING.
// - A function of a trigger, view, default, cast, operator or policy runs without its name in the
//   text, so hapax does not see it. The next message may see what that function leaves.
// - What only the server process knows: setseed, connections of dblink, variables of PL/Perl,
//   PL/Python and PL/Tcl.
// - What only libpqxx's connection knows, such as its verbosity. With libpqxx 6 that is also a
//   statement that was given to its prepare() and never ran.
//
// Thread safety: none. A context belongs to the thread that called `handle`, until `handle`
// returns.
class Context {
 public:
  // Runs one statement now and returns its rows. Each distinct text is prepared once for each
  // connection, so pass values as parameters ($1, $2 …), never inside the text.
  // It first sends the statements that `write` deferred, so a handler reads its own writes.
  // Throws: SqlError. Do not catch it, and the route's policy tries the message again. To go on
  //   after an expected error, use a pqxx::subtransaction; see pqxx().
  // Blocks: one round trip, bounded by postgres.statement_timeout and postgres.lock_timeout.
  template <class... Values>
  Rows sql(std::string_view text, const Values&... values) {
    return run(text, {Parameter(values)...});
  }

  // Runs one statement later, for statements whose rows you do not need. hapax sends deferred
  // writes in order together with the completion, in one round trip. So an SQL error appears after
  // `handle` has returned, and hapax handles it as if `handle` had thrown it.
  // Plain INSERTs (`INSERT INTO t (…) VALUES ($1, …)`) that follow each other go out as one
  // statement; in a batch also those of several messages. If a trigger depends on single
  // statements, use `sql`. After a call of `pqxx` nothing is deferred any more. A statement that
  // could end the transaction is never deferred.
  // Throws: SqlError if the text itself does not prepare (syntax, unknown table). If this call
  //   sends the deferred statements at once, also the SqlError of an earlier one. That happens for
  //   a text that this connection has not seen, and at 1 MiB. It also happens once for each
  //   connection at the second row of a plain INSERT. Do not catch it: by then the transaction is
  //   aborted.
  // Blocks: one or two round trips if this connection sees the text for the first time, and one for
  //   each MiB. postgres.statement_timeout and postgres.lock_timeout bound each.
  template <class... Values>
  void write(std::string_view text, const Values&... values) {
    defer(text, {Parameter(values)...});
  }

  // Inserts one row, without SQL. Deferred as `write`. Rows of one table that follow each other
  // become one statement over arrays; in a batch also those of several messages.
  //   context.insert("payments", {"id", "account"}, payment.at("id"), payment.at("account"));
  // `table`: "payments" or "ledger.payments". Write names as PostgreSQL keeps them: in lower case,
  // unless they were made in quotes. They are never read as SQL.
  // Rows go out in the order of the calls.
  // Throws: SqlError if there is no such table or column; else as `write`.
  // Blocks: as `write`.
  template <std::size_t kColumns, class... Values>
  void insert(std::string_view table, const std::string_view (&columns)[kColumns],
              const Values&... values) {
    static_assert(sizeof...(Values) == kColumns, "insert wants one value for each column");
    Parameter row[] = {Parameter(values)...};
    defer_row(table, columns, row);
  }

  // Stores a result with the key, at most the route's `max_result_bytes`. The last call wins.
  // Throws: Reject if it is larger, or has the member `hapax:response`, which is that of `respond`.
  //   nlohmann::json::type_error if a text in it is not UTF-8. std::logic_error in on_duplicate,
  //   and on a route with key "position", which keeps no results.
  // Blocks: no; the result goes out with the completion.
  [[gnu::visibility("hidden")]] void result(const nlohmann::json& value) {
    set_result(value.dump());
  }

  // Answers the HTTP request that this message is (docs/gate.md), and stores the answer with the
  // key: a retry gets it again. Of the headers only those are stored that a retry may get:
  // Content-Type, Location, Content-Location, ETag, Last-Modified and Link. For a message from
  // Kafka the answer is only stored, as the key's result. The last call of `respond` or `result`
  // wins. If a request can never work, call this with a status of 400 to 499 and then throw Reject.
  // Then only that answer is written.
  // Throws: std::invalid_argument if the answer cannot be sent or stored. Its status must be 200 to
  //   499, its headers not the gate's own, and it must fit into `max_result_bytes`. It may have 100
  //   headers, 8 KiB in a name or value, and 32 KiB in all of them. A 204, 205 or 304 has no body.
  //   For an answer of 500 and above, throw another exception instead. std::logic_error as
  //   `result`.
  // Blocks: no; the answer goes out with the completion.
  void respond(int status, std::vector<std::pair<std::string, std::string>> headers = {},
               std::string body = {}) {
    set_response({status, std::move(headers), std::move(body)});
  }

  // Sends a record to a Kafka topic if and only if this transaction commits, and after it did.
  // hapax keeps the record in hapax.outbox until Kafka has acknowledged it. Records of one key
  // appear in the order in which their transactions were serialised. hapax adds the headers
  // `idempotency-key` (the same for each run of this message) and `hapax-origin`. It hands on
  // traceparent(), and the message's `tracestate` and `correlation-id`. See docs/outbox.md.
  // Throws: std::invalid_argument if the topic is not in `publish.topics`, or if a name is used
  //   twice. Also if the handler sets one of hapax's two headers, or if a header's name is not
  //   UTF-8 or holds a NUL. Reject if the record is larger than the topic takes. std::logic_error
  //   in on_duplicate, and for a GET or HEAD of a gate.
  // Blocks: no; the record goes out with the completion.
  void publish(std::string_view topic, Outgoing record) {
    publish_record(topic, std::move(record));
  }

  // The idempotency key of the operation, as hapax stores it and as `hapax explain --key` takes it.
  // A short printable key is as its producer sent it. Others are encoded, in 200 bytes at most. It
  // is unique within the route's scope and tenant(). "" if the operation has none: on a route with
  // key "position", and for a GET or HEAD of a gate.
  // Throws: nothing. Blocks: no. Valid as long as the context is.
  std::string_view key() { return current_operation().key; }

  // The tenant of that key, as hapax stores it; "" if the route has none.
  // Throws: nothing. Blocks: no. Valid as long as the context is.
  std::string_view tenant() { return current_operation().tenant; }

  // The W3C traceparent for requests that the handler sends to others. It is that of the span in
  // which the handler runs. If hapax sends no span, it is the message's own; "" if it has none.
  // See docs/operating.md#traces.
  // Throws: nothing. Blocks: no.
  std::string traceparent() { return current_traceparent(); }

  // Returns libpqxx's transaction for everything else (subtransactions, COPY, large results). It is
  // valid as long as the context is. Include <pqxx/pqxx> yourself.
  // This call first sends the statements that `write` deferred, and once for each message a
  // SAVEPOINT, by which hapax recognises its transaction.
  // While a pqxx::subtransaction is open, use only that: `sql`, `write` and `insert` then throw, or
  // are rolled back with it.
  // With libpqxx 6 (Debian 12), begin a subtransaction with an `exec`, such as exec("SELECT 1").
  // Only `exec` makes its savepoint. Without one, abort() does not take back what exec_params did.
  // Throws: SqlError of a deferred statement.
  // Blocks: until PostgreSQL has answered these.
  template <class Transaction = pqxx::dbtransaction>
  Transaction& pqxx() {
    static_assert(
        requires { sizeof(Transaction); },
        "context.pqxx() needs #include <pqxx/pqxx> above the handler");
    return lend();
  }

 protected:
  ~Context() = default;

 private:
  virtual pqxx::dbtransaction& lend() = 0;
  virtual Rows run(std::string_view text, std::vector<Parameter> values) = 0;
  virtual void defer(std::string_view text, std::vector<Parameter> values) = 0;
  virtual void set_result(std::string json) = 0;
  // May move from `values`.
  virtual void defer_row(std::string_view table, std::span<const std::string_view> columns,
                         std::span<Parameter> values) = 0;
  virtual void publish_record(std::string_view topic, Outgoing record) = 0;
  virtual void set_response(Response response) = 0;
  virtual std::string current_traceparent() = 0;
  virtual Operation current_operation() = 0;
};

}  // namespace hapax
