// The schema: numbered migrations that the binary carries, applied one transaction each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/session.hpp"

namespace hapax::store {

// The newest migration in this binary, and the oldest schema that this worker can run on.
inline constexpr int kSchema = 16;
inline constexpr int kOldestSchema = 5;
// The first schema with an outbox.
inline constexpr int kOutboxSchema = 9;
// Of a worker with a route that calls to the outside.
inline constexpr int kOutsideSchema = 12;
// Of a worker that publishes in transactions.
inline constexpr int kTransactionsSchema = 13;
// Of a worker with a route whose key is the position.
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

// Applies what is missing, each in its own transaction under one lock: a second run waits, then
// finds nothing to do. Returns what it applied. `tries_again`: asked if another session held a
// table for longer than lock_timeout; it may wait.
// Throws: DatabaseError; std::runtime_error where an applied migration was changed since.
std::vector<int> migrate_up(Session& session, const std::function<bool()>& tries_again = {});

// Takes back everything above `target`, newest first, with all data in it.
std::vector<int> migrate_down(Session& session, int target);

// The text of all migrations, for people who run SQL by hand.
std::string migration_text();

// Nothing, or one sentence on why this binary cannot work on this schema and how to fix it.
std::optional<std::string> schema_problem(Session& session, int oldest = kOldestSchema);

}  // namespace hapax::store
