// Requests that the gate accepted, and what became of them in a worker.
//
// Throws: DatabaseError (Phase::claim), from all of them. Thread safety: none; each call uses the
// caller's session.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/session.hpp"

namespace hapax::store {

// How long the key of an accepted request is claimed for: its expiry counts from its outcome, which
// has not been seen yet.
inline constexpr std::chrono::seconds kUntilOutcome = std::chrono::hours(24) * 36500;

// One gate, and the scopes of its workers.
struct OperationsScope {
  std::string scope;
  std::chrono::seconds retention;
  std::vector<std::string> paths, scopes;  // of each accepting route: its path, its worker's scope
};

// The gate's key of an accepted request, as it is stored.
struct OperationKey {
  std::string key, tenant;
  std::string record;  // the idempotency key of the record that was made of it
};

struct OperationState {
  bool waits = false;                        // the gate has seen no outcome yet
  std::string scope = {};                    // of its worker
  std::optional<std::string> status = {};    // of the worker's key
  std::optional<std::string> result = {};    // JSON
  bool refused = false;                      // completed, and yet the other side refused the call
  std::optional<std::string> rejected = {};  // of a failed key: the handler's words
  bool settled = false;                      // that this outcome was seen is committed

  // Whether the worker has come to an end with it.
  bool has_outcome() const { return status == "completed" || status == "failed"; }
};

// Nothing: the gate has no such key (any more). Blocks: one round trip.
std::optional<OperationState> read_operation(Session& session, const OperationsScope& in,
                                             const OperationKey& key);

// From here on the keys expire, counted from their outcomes. Commits synchronously: what was read
// of an outcome before is then as durable as that. How many of them have one; nothing was written
// if none has. `scopes`: of each one's worker.
std::size_t settle_operations(Session& session, const OperationsScope& in,
                              const std::vector<OperationKey>& keys,
                              const std::vector<std::string>& scopes);

struct WaitingOperation {
  std::string expires_at = "-infinity";  // as PostgreSQL writes it
  std::string key, tenant, path;
};

// Those without an outcome that has been seen, oldest first, behind `after`.
std::vector<WaitingOperation> list_waiting_operations(Session& session, const OperationsScope& in,
                                                      const WaitingOperation& after,
                                                      std::size_t limit);

}  // namespace hapax::store
