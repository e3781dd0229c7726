// One PostgreSQL connection, with hapax's settings and its prepared statements.
//
// Thread safety: none; a session and what came from it belong to one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"
#include "store/fault.hpp"
#include "store/statement.hpp"
#include "store/user_statement.hpp"

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
  // Connects to a primary and sets the session up: READ COMMITTED, UTF-8, the timeouts, keepalives,
  // and read-only outside of our own BEGIN READ WRITE. It searches pg_catalog alone. Over a network
  // it uses TLS, unless the url asks for something else (transport.hpp).
  // Throws: DatabaseError. Blocks: at most connect_timeout for each host in the url.
  explicit Session(const ConnectOptions& options);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // From now on handlers' statements find what the role's own search_path names.
  // Throws: DatabaseError. Blocks: one round trip.
  void serve_handlers();

  // Prepares a statement of hapax's own. False if it was prepared before. Throws: DatabaseError.
  bool prepare(const Statement& statement);

  // "EXECUTE name(…)" with the values quoted; prepares the statement the first time.
  // Throws: DatabaseError if the statement cannot be prepared.
  std::string execute(const Statement& statement, const std::vector<Parameter>& values);

  // The same with values that are SQL literals already.
  std::string execute_literals(const Statement& statement, std::span<const std::string> literals);

  // The same for a handler's own text. Each distinct text is prepared once. Of more than
  // kMaxUserStatements the oldest is removed.
  std::string execute(std::string_view text, const std::vector<Parameter>& values);

  // Whether a handler's text is prepared.
  bool knows(std::string_view text) const;

  // A handler's text, prepared. Valid until the next text is prepared.
  // Throws: DatabaseError if it cannot be prepared.
  UserStatement& prepared(std::string_view text);

  // lock_timeout in milliseconds, as PostgreSQL's setting.
  const std::string& lock_timeout() const;

  // statement_timeout, as it was asked for.
  std::chrono::milliseconds statement_timeout() const;

  // Ends the connection while a handler has the session: PostgreSQL rolls back, and the next use
  // fails. Any thread may call it while the session's own thread is in no call of the session.
  // Throws: nothing.
  void cut() noexcept;

  // Whether there is nothing that clean() would have to undo.
  bool is_clean() const;

  // Undoes what a handler's SQL may have left in this session, before the next message. That is
  // settings such as search_path, roles, LISTEN, session advisory locks, temporary tables, cursors,
  // and sequences' last values. Does nothing if since the last time only plain queries ran that
  // call PostgreSQL's own functions only. False if the session must be replaced instead.
  // Throws: DatabaseError. Blocks: one round trip, if there may be something to undo.
  // Precondition: no transaction is open.
  bool clean();

  // A new nonce for a claim: random for each session, with a counter within it.
  std::string next_nonce();

  // "6.4.5"-like versions of what is in use, for --version.
  static std::string pqxx_version();
  static std::string libpq_version();

  static constexpr std::size_t kMaxUserStatements = 1000;

 private:
  friend class Transaction;
  friend class BareLane;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hapax::store
