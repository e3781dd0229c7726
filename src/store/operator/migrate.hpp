// The schema: numbered migrations in the binary. Each is applied in a transaction of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/session.hpp"

namespace hapax::store {

// The newest migration in this binary, and the oldest schema on which this worker can run.
inline constexpr int kSchema = 21;
inline constexpr int kOldestSchema = 5;
// The first schema with an outbox.
inline constexpr int kOutboxSchema = 9;
// The first schema for routes that call to the outside.
inline constexpr int kOutsideSchema = 12;
// The first schema for publish.transactions.
inline constexpr int kTransactionsSchema = 13;
// The first schema for routes whose key is the position.
inline constexpr int kPositionsSchema = 14;

struct MigrationState {
  int number = 0;
  std::string name;
  std::optional<std::string> applied_at;
  bool changed = false;  // applied with another text than this binary carries
  bool unknown = false;  // applied by a newer binary
};

// All migrations that the binary or the database knows, in order. Throws: DatabaseError.
std::vector<MigrationState> migration_states(Session& session);

// Called before a wait for another run, or for any session that holds the lock of the migrations.
// `holder`: which session that is, as far as PostgreSQL shows it to this role.
using Waits = std::function<void(const std::string& holder)>;

// Applies the missing migrations, each in its own transaction, and returns their numbers. All are
// under one lock, so a second run waits and then finds nothing to do. `tries_again`: called if
// another session held a table for longer than lock_timeout. It may wait.
// Blocks: without a bound, while another session has that lock.
// Throws: DatabaseError; std::runtime_error if an applied migration was changed since.
std::vector<int> migrate_up(Session& session, const std::function<bool()>& tries_again = {},
                            const Waits& waits = {});

// Reverts all migrations above `target`, the newest first, and removes the data in their tables.
std::vector<int> migrate_down(Session& session, int target, const Waits& waits = {});

// The text of all migrations, for people who run SQL by hand.
std::string migration_text();

// Nothing, or one sentence on why this binary cannot work on this schema and how to fix it.
std::optional<std::string> schema_problem(Session& session, int oldest = kOldestSchema);

}  // namespace hapax::store
