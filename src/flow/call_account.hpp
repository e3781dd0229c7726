// The account of a call to the outside: what is to be done with a key that is taken, and what
// becomes of a message whose call came back without an answer.
//
// Throws: store::DatabaseError, from all of them. Blocks: for PostgreSQL's answers, bounded by its
// timeouts. Thread safety: none; each call uses the attempt's session.
// Precondition: the attempt's identity is derived, and its session is open.
#pragma once

#include <optional>
#include <variant>

#include "flow/attempt.hpp"
#include "flow/outcome.hpp"
#include "outside/policy.hpp"
#include "store/message/dead_letter.hpp"
#include "store/outside/calls.hpp"

namespace hapax::flow {

// Call, reconcile or book; or the end of the message, whose dead letter is kept.
// `history`: what is known of the operation, which may be more than `taken` tells.
std::variant<outside::Step, Outcome> next_step(Attempt& attempt, const store::TakenCall& taken,
                                               const outside::History& history);

// What becomes of the message. May be repeated: `failed` keeps the failed run, once it is recorded.
// Precondition: it has not ended as `answered`.
Outcome account_for_call(Attempt& attempt, const store::TakenCall& taken,
                         const outside::Ended& ended, std::optional<store::FailedRuns>& failed);

}  // namespace hapax::flow
