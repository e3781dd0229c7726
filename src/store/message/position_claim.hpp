// Taking offsets instead of keys, for routes with `key: "position"`. One offset is taken by claim()
// (claim.hpp), as a key is.
//
// Thread safety: none; each call uses the caller's session.
#pragma once

#include <span>

#include "store/message/claim_batch.hpp"

namespace hapax::store {

// Opens the transaction and takes the offsets: one row for each partition. A key that is not ours
// has no holder: its partition is another's by now. Precondition: no offset comes twice, and all
// have one group and topic. None is in doubt. Throws: DatabaseError (Phase::claim). Blocks: at most
// lock_timeout for a worker that takes a partition.
BatchClaim claim_positions(Transaction& transaction, std::span<const ClaimRequest> requests);

// Whether a transaction that has ended settled the offset. Throws: DatabaseError.
bool is_settled(Session& session, const Source& source);

}  // namespace hapax::store
