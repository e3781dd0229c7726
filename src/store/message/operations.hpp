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

// How long the key of an accepted request is kept until the gate has seen its outcome. Its expiry
// counts from the outcome.
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

// The key under which a worker keeps the outcome of an accepted request.
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
  bool settled = false;                      // it is committed that the gate has seen this outcome

  // Whether the worker has finished it.
  bool is_one() const { return status == "completed" || status == "failed"; }
};

// Nothing: the gate has no such key, or no longer. Blocks: one round trip.
std::optional<Acceptance> read_acceptance(Session& session, const OperationKey& key);

// What has become of the request since it was accepted. If a worker completed the record earlier,
// that counts, because the record is a duplicate of it. If a worker gave it up earlier, that does
// not count, because it runs the record again. `retention`: of the gate. Blocks: one round trip.
OperationOutcome read_outcome(Session& session, const OperationKey& key, const OutcomePlace& place,
                              std::chrono::seconds retention);

// Adds to the acceptance: if a worker has completed the record before, its key is kept as long as
// the gate's key from now on. The record will be a duplicate of it. `retention`: of the gate.
void keep_outcome(Transaction& transaction, const OutcomePlace& place,
                  std::chrono::seconds retention);

// Lets the keys expire, counted from their outcomes. Commits synchronously, so the outcomes that
// were read before are durable, too. Returns how many keys have an outcome. If none has, nothing is
// written. `places`: one for each key.
std::size_t settle_operations(Session& session, const std::vector<OperationKey>& keys,
                              const std::vector<OutcomePlace>& places,
                              std::chrono::seconds retention);

struct WaitingOperation {
  std::string expires_at = "-infinity";  // as PostgreSQL writes it
  std::string key, tenant, path;
  std::string fingerprint;  // in hex
};

// Operations after `after` whose outcome the gate has not seen, the oldest first.
std::vector<WaitingOperation> list_waiting_operations(Session& session, const std::string& scope,
                                                      const std::vector<std::string>& paths,
                                                      const WaitingOperation& after,
                                                      std::size_t limit);

}  // namespace hapax::store
