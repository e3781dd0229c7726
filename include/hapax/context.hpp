// What a handler may do inside the transaction that hapax lends it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"

namespace pqxx {
class dbtransaction;
}

namespace hapax {

// One open PostgreSQL transaction, lent for the length of one `handle`. Everything written through
// it commits together with the message's idempotency key, or not at all.
//
// A handler must not COMMIT, ROLLBACK, SET CONSTRAINTS or RESET ALL: the seal refuses the
// completion and the route halts, because part of an effect may stand alone. Savepoints are fine.
//
// Thread safety: none; it belongs to the thread that called `handle`, until `handle` returns.
class Context {
 public:
  // Runs one statement now and returns its rows. Each distinct text is prepared once a connection,
  // so pass values as parameters ($1, $2 …), never inside the text.
  // Sends what `write` has deferred first: a handler reads its own writes.
  // Throws: SqlError; let it pass, so that the message is tried again by the route's policy. To go
  //   on after an expected error use a pqxx::subtransaction on pqxx().
  // Blocks: one round trip, bounded by postgres.statement_timeout and postgres.lock_timeout.
  template <class... Values>
  Rows sql(std::string_view text, const Values&... values) {
    return run(text, {Parameter(values)...});
  }

  // A statement whose rows nobody needs. Deferred: writes are sent in order together with the
  // completion, in one round trip, so an SQL error appears after `handle` has returned and is
  // handled as if `handle` had thrown it. Plain INSERTs (`INSERT INTO t (…) VALUES ($1, …)`) that
  // follow each other, in a batch also those of several messages, go out as one statement: where a
  // trigger minds that, use `sql`. After `pqxx` nothing is deferred any more.
  // Throws: SqlError where the text itself does not prepare (syntax, unknown table); and that of an
  //   earlier `write`, where these are sent at once: before a text that this connection has not
  //   seen, at the second row of a plain INSERT, once a connection, and where 1 MiB is deferred.
  //   Let it pass: by then the transaction is aborted.
  // Blocks: a round trip or two the first time a text is seen on this connection, and for each MiB.
  template <class... Values>
  void write(std::string_view text, const Values&... values) {
    defer(text, {Parameter(values)...});
  }

  // One row, without SQL. Deferred as `write`; in a batch the rows of many messages become one
  // statement over arrays.
  //   context.insert("payments", {"id", "account"}, payment.at("id"), payment.at("account"));
  // `table`: "payments" or "ledger.payments". Names are as PostgreSQL keeps them (lower case,
  // unless they were made in quotes) and never read as SQL. Rows of one table keep their order.
  // Those of several tables go out table by table, in the order of their first rows; where a
  // trigger minds that, use `sql`. Throws: SqlError where there is no
  // such table or column. Blocks: as `write`.
  template <std::size_t kColumns, class... Values>
  void insert(std::string_view table, const std::string_view (&columns)[kColumns],
              const Values&... values) {
    static_assert(sizeof...(Values) == kColumns, "insert wants one value for each column");
    Parameter row[] = {Parameter(values)...};
    defer_row(table, columns, row);
  }

  // Stored with the key (at most `max_result_bytes` of the route). The last call wins.
  // Throws: Reject where it is larger; nlohmann::json::type_error where its text is no UTF-8.
  void result(const nlohmann::json& value) { set_result(value.dump()); }

  // libpqxx's transaction for everything else (subtransactions, COPY, large results). Include
  // <pqxx/pqxx> yourself. Sends what `write` has deferred first: throws SqlError for it, and blocks
  // until it is answered. While a pqxx::subtransaction is open use only that: `sql`, `write`
  // and `insert` then throw, or are rolled back with it.
  virtual pqxx::dbtransaction& pqxx() = 0;

 protected:
  ~Context() = default;

 private:
  virtual Rows run(std::string_view text, std::vector<Parameter> values) = 0;
  virtual void defer(std::string_view text, std::vector<Parameter> values) = 0;
  virtual void set_result(std::string json) = 0;
  // May move from `values`.
  virtual void defer_row(std::string_view table, std::span<const std::string_view> columns,
                         std::span<Parameter> values) = 0;
};

// PostgreSQL refused a statement. Seen by a handler that catches it; hapax classifies it by
// SQLSTATE, never by text.
class SqlError : public std::runtime_error {
 public:
  SqlError(const std::string& what, std::string sqlstate, std::string statement)
      : std::runtime_error(what),
        sqlstate_(std::move(sqlstate)),
        statement_(std::move(statement)) {}
  // Five characters, or empty where the connection was lost.
  const std::string& sqlstate() const { return sqlstate_; }
  const std::string& statement() const { return statement_; }

 private:
  std::string sqlstate_;
  std::string statement_;
};

}  // namespace hapax
