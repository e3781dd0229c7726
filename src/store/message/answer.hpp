// What is stored with a completed key, for a client that sends its request again.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "store/message/claim.hpp"

namespace hapax::store {

// Nothing: no committed transaction has the key. Throws: DatabaseError (Phase::claim).
std::optional<StoredAnswer> read_answer(Transaction& transaction, const ClaimRequest& request);

// The same outside of a transaction, in one round trip.
std::optional<StoredAnswer> read_answer(Session& session, const ClaimRequest& request);

// Begins a transaction that cannot write. Returns the nonce by which refuse_ended() recognises it.
// Throws: DatabaseError.
std::string begin_read_only(Transaction& transaction);

// Makes this transaction's COMMIT wait for the disk, whether or not synchronous_commit asks for
// that. The setting `remote_apply` stays, because it waits for more. Sent with the completion.
void commit_synchronously(Transaction& transaction);

// Commits the transaction with a small write, synchronously. After that all that was committed
// before it, by any session, is durable: on the disk, and on the synchronous standby if there is
// one. Throws: DatabaseError. Blocks: without bound, if that standby is gone.
void await_durable(Transaction& transaction);

}  // namespace hapax::store
