// One PostgreSQL connection, with hapax's settings and its prepared statements.
//
// Thread safety: none; a session and what came from it belong to one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"
#include "store/fault.hpp"
#include "store/statement.hpp"

namespace pqxx {
class dbtransaction;
}

namespace hapax::store {

struct ConnectOptions {
  std::string url;  // libpq URI or conninfo
  std::string application_name = "hapax";
  std::chrono::milliseconds connect_timeout{5000};  // libpq counts whole seconds
  std::chrono::milliseconds lock_timeout{3000};
  std::chrono::milliseconds statement_timeout{30000};
  std::chrono::milliseconds idle_in_transaction_timeout{60000};
};

class Session {
 public:
  // Connects and sets the session up: read-only outside our own BEGIN READ WRITE, READ COMMITTED,
  // UTF-8, the timeouts, keepalives, nothing but a primary.
  // Throws: DatabaseError. Blocks: at most connect_timeout for each host in the url.
  explicit Session(const ConnectOptions& options);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // "EXECUTE name(…)" with the values quoted; prepares the statement the first time.
  // Throws: DatabaseError where it does not prepare, or a value holds a NUL byte.
  std::string execute(const Statement& statement, const std::vector<Parameter>& values);

  // The same for a handler's own text: each distinct text is prepared once, at most
  // kMaxUserStatements of them; beyond that the oldest is forgotten.
  std::string execute(std::string_view text, const std::vector<Parameter>& values);

  // Undoes what a handler's SQL may have left in this session for the next message: search_path and
  // other settings, roles, LISTEN, session advisory locks, temporary tables, cursors. Nothing where
  // only plain queries ran since the last time. False where the session must be replaced instead.
  // Throws: DatabaseError. Blocks: one round trip, where there may be something.
  // Precondition: no transaction is open.
  bool clean();

  // A new nonce for a claim: random for each session, counted within it.
  std::string next_nonce();

  // "6.4.5"-like versions of what is in use, for --version.
  static std::string pqxx_version();
  static std::string libpq_version();

  static constexpr std::size_t kMaxUserStatements = 1000;

 private:
  friend class Transaction;
  struct State;
  std::unique_ptr<State> state_;
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
  void add(std::string statement);

  // Sends what was added, then `statement`, in one round trip; the rows of the last one.
  // Throws: DatabaseError.
  Rows run(std::string statement);
  Rows run(const Statement& statement, const std::vector<Parameter>& values);

  // Sends what was added and COMMIT, in one round trip. An error in any statement skips the rest
  // of the text, COMMIT included.
  // Throws: DatabaseError; kind in_doubt where the answer to COMMIT was lost.
  void commit();

  // Throws: nothing; a connection that is gone has rolled back by itself.
  void rollback() noexcept;

  Session& session() { return session_; }

  // For handlers; sends what was added first.
  pqxx::dbtransaction& pqxx();

  // The statements that were added and not yet sent.
  bool has_pending() const { return !pending_.empty(); }
  std::size_t pending_bytes() const { return pending_.size(); }

  // Sends what was added, now. Throws: DatabaseError.
  void flush();

 private:
  class Work;

  Session& session_;
  std::string pending_;
  std::unique_ptr<Work> work_;
  bool begun_ = false;
  bool done_ = false;
};

}  // namespace hapax::store
