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

// A statement of a handler's was not run, see Transaction::take_plain_only().
class NotPlain : public std::runtime_error {
 public:
  NotPlain() : std::runtime_error("a statement that may leave something behind, or pqxx()") {}
};

// A transaction of our own: BEGIN READ WRITE travels with the first text and COMMIT with the last,
// so that a message costs two round trips. Derived from pqxx::dbtransaction inside, so that
// libpqxx's subtransactions, streams and cursors work on it.
//
// Rolls back when it is destroyed uncommitted. After any DatabaseError with a lost connection the
// session must be thrown away too.
class Transaction {
 public:
  explicit Transaction(Session& session);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Adds a statement to the text that goes out with the next run or commit.
  void add(const std::string& statement);

  // Adds a statement of hapax's own behind those of a handler: it runs as the session's user,
  // also if the handler has taken a role.
  void add_own(const std::string& statement);

  // Adds a handler's statement whose rows nobody needs. Rows for one plain INSERT that follow each
  // other become one statement. A statement that may end the transaction is sent at once.
  void defer(std::string_view text, std::vector<Parameter> values);

  // Adds one row for a table (Context::insert). Rows of one table that follow each other become one
  // statement; none passes a row of another table. May move from `values`.
  void insert(std::string_view table, std::span<const std::string_view> columns,
              std::span<Parameter> values);

  // A handler's statement, now; its rows.
  Rows query(std::string_view text, const std::vector<Parameter>& values);

  // Sends what was added, then `statement`, in one round trip; the rows of the last one.
  // Throws: DatabaseError.
  Rows run(const std::string& statement);
  Rows run(const Statement& statement, const std::vector<Parameter>& values);

  // As run(). Nothing where exactly `rows` came, which then nobody has to read.
  std::optional<Rows> run_unless(std::size_t rows, const std::string& statement);

  // Rolls back and runs `statement` outside, in one round trip; what follows begins a new
  // transaction, with its own BEGIN. For reading why nothing could be done. Throws: DatabaseError.
  Rows roll_back_and_run(const std::string& statement);

  // Runs `statement` alone, before any BEGIN. Throws: DatabaseError. Precondition: !has_begun().
  Rows run_outside(const std::string& statement);

  // Whether anything was sent since the last BEGIN.
  bool has_begun() const { return begun_; }

  // Sends what was added and COMMIT, in one round trip. An error in any statement skips the rest
  // of the text, COMMIT included.
  // Throws: DatabaseError; kind in_doubt where the answer to COMMIT was lost.
  void commit();

  // The same, and with it the first statement of a new transaction, which this object then is; its
  // rows. That one's error comes out of here too, when what came before is committed already: roll
  // back and ask outside which of them failed.
  // Throws: DatabaseError; kind in_doubt as in commit().
  Rows commit_and_run(const std::string& statement);

  // Throws: nothing; a connection that is gone has rolled back by itself.
  void rollback() noexcept;

  Session& session() { return session_; }

  // For handlers; sends what was added first. Throws: DatabaseError.
  pqxx::dbtransaction& pqxx();

  // After an error, for a handler that could end the transaction: whether it is still the one that
  // was lent, be it aborted. Precondition: it is rolled back afterwards.
  // Throws: DatabaseError: HX002 if it is not, or if the connection is lost.
  // Blocks: a round trip, or none if nothing was run that can end a transaction.
  void refuse_ended();

  // From now on a handler's statement that may leave something behind, or end the transaction, is
  // not run, but throws NotPlain. So does pqxx().
  void take_plain_only() { takes_plain_only_ = true; }
  // Whether one was refused, though the handler may have caught that.
  bool has_refused() const { return has_refused_; }

  // Whether a handler had what can end the transaction.
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
  void close_rows();
  Rows send(const std::string& statement);
  pqxx::result exchange(const std::string& statement);
  pqxx::result exchange_text(std::string text);
  Rows run_with_commit(const std::string& statement);
  void roll_back_by_hand() noexcept;

  Session& session_;
  std::string pending_;
  std::optional<PendingRows> rows_;  // go out after pending_
  std::unique_ptr<Work> work_;
  std::string first_error_;  // PostgreSQL's, since BEGIN: what came after it only says "aborted"
  // Made before the first statement that could end the transaction. If it is gone, so is the
  // transaction; an aborted one of the handler's own cannot be told from ours otherwise.
  std::string savepoint_;
  bool begun_ = false;
  bool done_ = false;
  bool takes_plain_only_ = false;
  bool has_refused_ = false;
};

}  // namespace hapax::store
