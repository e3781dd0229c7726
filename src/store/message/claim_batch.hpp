// Taking the keys of several messages of one route in one statement.
//
// Thread safety: none; each call uses the caller's transaction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/message/claim.hpp"

namespace hapax::store {

struct BatchClaim {
  std::string nonce;  // for the seal
  struct Key {
    bool ours = false;
    std::optional<KeyHolder> holder;  // of a key that is not ours; nothing: it vanished meanwhile
    std::optional<StoredAnswer> answer;  // of the holder, if the first request asks for it
  };
  std::vector<Key> keys;  // as the requests
};

// Opens the transaction and takes the free keys. `one_at_a_time`: waits for every other batch of
// this group and topic that also sets it. Precondition: `requests` ascend by (key, tenant),
// bytewise, which is the order in which every process takes locks. No key comes twice. All have one
// scope, group, topic, fingerprint rule and retention. Throws: DatabaseError (Phase::claim).
// Blocks: at most lock_timeout for each held key, and for its turn.
BatchClaim claim_batch(Transaction& transaction, std::span<const ClaimRequest> requests,
                       bool one_at_a_time = false);

// Adds results to the transaction: (number of the request, JSON text).
// Precondition: their keys are ours; one scope.
void add_results(Transaction& transaction, std::span<const ClaimRequest> requests,
                 std::span<const std::pair<std::size_t, std::string>> results);

// Whether a table outside of hapax has a constraint or trigger that waits for COMMIT. It judges all
// operations of a transaction together. Throws: DatabaseError. Blocks: a round trip.
bool has_deferred(Session& session);

}  // namespace hapax::store
