// Taking the keys of answered calls, in the transaction that books the answers.
//
// Thread safety: none; each call uses the caller's transaction.
// Throws: DatabaseError (Phase::claim). Blocks: at most lock_timeout for each held key.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "store/message/claim_batch.hpp"

namespace hapax::store {

// As claim(): opens the transaction that books an answer. `lost`: another holder took the key over.
struct AnswerClaim {
  std::string nonce;
  bool lost = false;
  bool fenced = false;
};
AnswerClaim claim_answered(Transaction& transaction, const ClaimRequest& request,
                           std::int64_t token);

// As claim_batch(), for answers: `tokens` are of the requests. A key that is not ours has no
// holder: another one took it over, or another worker has its partition.
BatchClaim claim_answers(Transaction& transaction, std::span<const ClaimRequest> requests,
                         std::span<const std::int64_t> tokens);

// Ends the open dead letter of a message that books its answer, with that transaction.
void add_end_of_letter(Transaction& transaction, const Source& source);

}  // namespace hapax::store
