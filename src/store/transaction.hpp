// A PostgreSQL transaction of our own, on one Session.
//
// Thread safety: none; it belongs to the session's thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"
#include "store/pending_rows.hpp"
#include "store/session.hpp"

namespace pqxx {
class dbtransaction;
class result;
}  // namespace pqxx

namespace hapax::store {

// A handler's statement was not run, see Transaction::take_plain_only().
class NotPlain : public std::runtime_error {
 public:
  NotPlain() : std::runtime_error("a statement that may leave something behind, or pqxx()") {}
};

// Sends BEGIN READ WRITE with the first text and COMMIT with the last, so a message costs two round
// trips. Inside it is a pqxx::dbtransaction, so libpqxx's subtransactions, streams and cursors work
// on it.
//
// Rolls back if it is destroyed uncommitted. After a DatabaseError with a lost connection the
// session must be thrown away, too.
class Transaction {
 public:
  explicit Transaction(Session& session);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Adds a statement to the text that goes out with the next run or commit.
  void add(const std::string& statement);

  // Adds a statement of hapax's own after those of a handler. It runs as the session's user, even
  // if the handler has taken a role.
  void add_own(const std::string& statement);

  // Adds a handler's statement whose rows the handler does not need. Rows for one plain INSERT that
  // follow each other become one statement. A statement that may end the transaction is sent at
  // once.
  void defer(std::string_view text, std::vector<Parameter> values);

  // Adds one row for a table (Context::insert). Rows of one table that follow each other become one
  // statement; none passes a row of another table. May move from `values`.
  void insert(std::string_view table, std::span<const std::string_view> columns,
              std::span<Parameter> values);

  // Rows that come after this join none from before.
  void close_rows();

  // Runs a handler's statement now, and returns its rows.
  Rows query(std::string_view text, const std::vector<Parameter>& values);

  // Sends what was added, then `statement`, in one round trip. Returns the rows of `statement`.
  // Throws: DatabaseError.
  Rows run(const std::string& statement);
  Rows run(const Statement& statement, const std::vector<Parameter>& values);

  // As run(), but returns nothing if exactly `rows` rows came, because then the caller need not
  // read them.
  std::optional<Rows> run_unless(std::size_t rows, const std::string& statement);

  // Rolls back and runs `statement` outside of the transaction, in one round trip. The next
  // statement begins a new transaction. It serves to read why nothing could be done. Throws:
  // DatabaseError.
  Rows roll_back_and_run(const std::string& statement);

  // Runs `statement` alone, before any BEGIN. Throws: DatabaseError. Precondition: !has_begun().
  Rows run_outside(const std::string& statement);

  // Whether anything was sent since the last BEGIN.
  bool has_begun() const { return begun_; }

  // Sends what was added and COMMIT, in one round trip. If a statement fails, PostgreSQL skips the
  // rest of the text, COMMIT included.
  // Throws: DatabaseError; kind in_doubt if the answer to COMMIT was lost.
  void commit();

  // The same, and sends with it the first statement of a new transaction. This object then is that
  // transaction. Returns the rows of that statement. If that statement fails, this throws as well,
  // though the first transaction is committed. The caller then rolls back and asks outside which
  // failed.
  // Throws: DatabaseError; kind in_doubt as in commit().
  Rows commit_and_run(const std::string& statement);

  // Throws: nothing. If the connection is gone, PostgreSQL has rolled back by itself.
  void rollback() noexcept;

  Session& session() { return session_; }

  // For handlers. Sends first what was added. Throws: DatabaseError.
  pqxx::dbtransaction& pqxx();

  // Called after an error, if the handler could end the transaction. Looks whether it is still the
  // one that the handler was lent, aborted or not. Precondition: it is rolled back afterwards.
  // Throws: DatabaseError HX002 if it is not, or if the connection is lost.
  // Blocks: a round trip, or none if nothing was run that can end a transaction.
  void refuse_ended();

  // From now on, a handler's statement that may leave something behind or end the transaction
  // throws NotPlain instead of running. So does pqxx().
  void take_plain_only() { takes_plain_only_ = true; }
  // Whether a statement was refused. The handler may have caught the exception.
  bool has_refused() const { return has_refused_; }

  // Whether the handler had a chance to end the transaction.
  bool is_watched() const { return !savepoint_.empty(); }

  // The statements that were added and not yet sent.
  bool has_pending() const { return !pending_.empty() || rows_; }
  std::size_t pending_bytes() const;

  // Forgets what was added and not yet sent.
  void drop_pending() noexcept;

  // Sends what was added, now. Throws: DatabaseError.
  void flush();

 private:
  class Work;

  UserStatement& prepared(std::string_view text);
  void expect_plain(Leaves leaves);
  bool prepare_set(const std::string& text);
  bool grow(PendingRows& rows, std::span<const Parameter> values);
  void begin_rows(std::string text, std::span<Parameter> values, std::string_view table = {},
                  std::span<const std::string_view> columns = {});
  [[noreturn]] void rethrow_named(std::string statement);
  void append(const std::string& statement);
  Rows send(const std::string& statement);
  pqxx::result exchange(const std::string& statement);
  pqxx::result exchange_text(std::string text);
  Rows run_with_commit(const std::string& statement);
  void roll_back_by_hand() noexcept;

  Session& session_;
  std::string pending_;
  std::optional<PendingRows> rows_;  // go out after pending_
  std::unique_ptr<Work> work_;
  std::string first_error_;  // PostgreSQL's, since BEGIN: later errors only report "aborted"
  // Made before the first statement that could end the transaction. If the savepoint is gone, so is
  // the transaction. Without it, an aborted transaction of the handler's own would look like ours.
  std::string savepoint_;
  bool begun_ = false;
  bool done_ = false;
  bool takes_plain_only_ = false;
  bool has_refused_ = false;
};

}  // namespace hapax::store
