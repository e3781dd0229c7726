// What a claim that was not simply won means: the claim table of the guarantees.
#pragma once

#include <optional>

#include "flow/attempt.hpp"
#include "flow/outcome.hpp"
#include "store/message/claim.hpp"

namespace hapax::flow {

// A key row or a guard that decides without running the handler. Nothing: the message may run.
// It leaves the attempt in Phase::account if it was writing a dead letter.
// Throws: DatabaseError.
std::optional<Outcome> judge(Attempt& attempt, const store::ClaimRequest& request,
                             const store::Claim& claim, store::Transaction& transaction);

// Whether the holder of the key had the same payload, or is this message.
bool is_same(const Task& task, const store::ClaimRequest& request, const store::KeyHolder& holder);

}  // namespace hapax::flow
