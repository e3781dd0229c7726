// Decides what follows if a claim did not win its key: the claim table of the guarantees.
#pragma once

#include <optional>

#include "flow/attempt.hpp"
#include "flow/outcome.hpp"
#include "store/message/claim.hpp"

namespace hapax::flow {

// Returns the outcome if a key row or a guard decides without the handler. Nothing: the message may
// run. If it was writing a dead letter, it leaves the attempt in Phase::account.
// Throws: DatabaseError.
std::optional<Outcome> judge(Attempt& attempt, const store::ClaimRequest& request,
                             const store::Claim& claim, store::Transaction& transaction);

// Whether the holder of the key had the same payload, or is this message.
bool is_same(const Task& task, const store::ClaimRequest& request, const store::KeyHolder& holder);

// Whether the message is a copy of the holder, which was given up: a relay that dies sends records
// again. Only an operator's replay runs such a one.
bool is_copy_of_given_up(const Task& task, const store::ClaimRequest& request,
                         const store::KeyHolder& holder, store::Transaction& transaction);

}  // namespace hapax::flow
