// What is stored with a completed key, for whoever asks again.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "store/message/claim.hpp"

namespace hapax::store {

// Nothing: nobody has the key who has committed. Throws: DatabaseError (Phase::claim).
std::optional<StoredAnswer> read_answer(Transaction& transaction, const ClaimRequest& request);

// The same outside of a transaction, in one round trip.
std::optional<StoredAnswer> read_answer(Session& session, const ClaimRequest& request);

// Begins a transaction that cannot write. The nonce, by which refuse_ended() recognises it.
// Throws: DatabaseError.
std::string begin_read_only(Transaction& transaction);

// What follows in this transaction waits for the disk at its COMMIT, whatever synchronous_commit
// says. If it says `remote_apply`, which is more, that stays. Sent with the completion.
void commit_synchronously(Transaction& transaction);

}  // namespace hapax::store
