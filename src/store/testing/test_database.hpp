// What the test kit does to its throw-away databases, as their owner.
//
// Thread safety: none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"
#include "store/session.hpp"

namespace hapax::store {

// Makes and removes whole databases.
class TestServer {
 public:
  // `url`: of the server's maintenance database, as a superuser. Throws: DatabaseError.
  explicit TestServer(const std::string& url);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // Makes database `name` as a copy of `original`. Names: letters, digits and underscores.
  // Precondition: no session is connected to `original`. Throws: DatabaseError. Blocks: some 50 ms.
  void copy(const std::string& name, const std::string& original);
  // Ends every session that is connected to it.
  void drop(const std::string& name);

  std::set<std::string> roles();
  // Drops the other roles. Precondition: no database but this server's own has anything of theirs.
  void drop_roles_but(const std::set<std::string>& kept);

 private:
  struct Connection;
  void run(const std::string& sql);
  std::unique_ptr<Connection> connection_;
};

// The worker role, and hapax_testing.commit_faults: a row in it fails at COMMIT, with the SQLSTATE
// that it names; 57P01 ends the session there. Precondition: the database is migrated.
void make_test_role(Session& owner, const std::string& role);

// Runs a file of SQL and gives the role what a handler needs of its tables.
void run_schema(Session& owner, const std::string& sql, const std::string& role);

// Rights by table, as routes[].tables declares them.
using TableRights = std::map<std::string, std::vector<std::string>>;

// Leaves the role only these rights on users' tables. Returns the tables that are not there.
std::vector<std::string> restrict_role(Session& owner, const std::string& role,
                                       const TableRights& rights);

// Runs `sql`. Returns the rights that it gives to none of the other roles, as "SELECT on payments".
// If several roles lack some, those of the role that lacks the fewest. Throws: DatabaseError if
// `sql` fails.
std::vector<std::string> ungranted(Session& owner, const std::string& sql, const std::string& role,
                                   const TableRights& rights);

// The texts of a row's values, by column; nothing: NULL.
using TableRow = std::map<std::string, std::optional<std::string>>;

struct TableRows {
  std::vector<TableRow> rows;
  // Columns of uuids, of numbers that a sequence draws, and of references to those. With each the
  // source of its values: one value of one source means the same in every column.
  std::map<std::string, std::string> drawn = {};
  std::set<std::string> times = {};  // columns of dates and times
};

inline constexpr const char* kKeysTable = "hapax.idempotency_keys";
inline constexpr const char* kOutboxTable = "hapax.outbox";

// Everything that handlers can have written or published, and the state and result of the
// idempotency keys.
std::map<std::string, TableRows> read_user_tables(Session& owner);

// A row of the outbox.
struct PublishedRow {
  std::string topic;
  std::optional<std::string> key, payload;
  std::string headers;  // as outbox_headers_of() takes them
  std::string idempotency_key;
};

// By id.
std::vector<PublishedRow> read_published(Session& owner);

// Remembers the rows of all tables and the state of all sequences, and puts them back; tables that
// were made since are dropped. In the database itself, as copying a database takes ten times as
// long.
void save_tables(Session& owner);
void restore_tables(Session& owner);

// Whether a session of this database waits for a lock.
bool is_waiting(Session& owner);

// Sessions of this database that belong to others than `application_name`.
int count_other_sessions(Session& owner, const std::string& application_name);

// Lets time pass for failed runs, calls and leases.
void pass_time(Session& owner, std::chrono::milliseconds time);

// What would be left for the next message, a line each. Precondition: no transaction is open.
std::vector<std::string> session_state(Session& session);

}  // namespace hapax::store
