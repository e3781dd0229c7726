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
#include "store/transaction.hpp"

namespace hapax::store {

// How long the key of an accepted request is claimed for: its expiry counts from its outcome, which
// has not been seen yet.
inline constexpr std::chrono::seconds kUntilOutcome = std::chrono::hours(24) * 36500;

// The gate's key of an accepted request, as it is stored.
struct OperationKey {
  std::string key, scope, tenant;
};

struct Acceptance {
  std::string path;         // of its route
  std::string fingerprint;  // of the request, in hex
  bool waits = false;       // the gate has seen no outcome yet
};

// Where a worker keeps the outcome of an acceptance.
struct OutcomePlace {
  std::string record;  // the idempotency key of the record that was made of the request
  std::string scope;   // of the worker's route
};

struct OperationOutcome {
  std::optional<std::string> status = {};    // of the worker's key
  std::optional<std::string> result = {};    // JSON
  bool refused = false;                      // completed, and yet the other side refused the call
  bool given_up = false;                     // an operator ended it: the outcome is not known
  std::optional<std::string> rejected = {};  // of a failed key: the handler's words
  bool settled = false;                      // that this outcome was seen is committed

  // Whether the worker has come to an end with it.
  bool is_one() const { return status == "completed" || status == "failed"; }
};

// Nothing: the gate has no such key (any more). Blocks: one round trip.
std::optional<Acceptance> read_acceptance(Session& session, const OperationKey& key);

// What has become of it since it was accepted. A worker that completed the record earlier knows it
// as a duplicate, so that counts; what it gave up on earlier does not, as it runs the record again.
// `retention`: of the gate. Blocks: one round trip.
OperationOutcome read_outcome(Session& session, const OperationKey& key, const OutcomePlace& place,
                              std::chrono::seconds retention);

// Adds to the acceptance: what a worker has completed before stays as long as the gate's key does
// from now on, because the record will be its duplicate. `retention`: of the gate.
void keep_outcome(Transaction& transaction, const OutcomePlace& place,
                  std::chrono::seconds retention);

// From here on the keys expire, counted from their outcomes. Commits synchronously: what was read
// of an outcome before is then as durable as that. How many of them have one; nothing was written
// if none has. `places`: of each one.
std::size_t settle_operations(Session& session, const std::vector<OperationKey>& keys,
                              const std::vector<OutcomePlace>& places,
                              std::chrono::seconds retention);

struct WaitingOperation {
  std::string expires_at = "-infinity";  // as PostgreSQL writes it
  std::string key, tenant, path;
  std::string fingerprint;  // in hex
};

// Those without an outcome that has been seen, oldest first, behind `after`.
std::vector<WaitingOperation> list_waiting_operations(Session& session, const std::string& scope,
                                                      const std::vector<std::string>& paths,
                                                      const WaitingOperation& after,
                                                      std::size_t limit);

}  // namespace hapax::store
