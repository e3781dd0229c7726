// Decides about a call to the outside. What to do with a key that was taken? If a call came back
// without an answer, what becomes of its message?
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

// Returns the next step (call, reconcile or book), or the end of the message. Its dead letter is
// kept then.
// `history`: what is known of the operation, which may be more than `taken` tells.
std::variant<outside::Step, Outcome> next_step(Attempt& attempt, const store::TakenCall& taken,
                                               const outside::History& history);

// If a step of the call is done, the operation was not left untouched. So `uncalled` becomes
// `resting`, and `why` names the steps.
void heed_steps(store::Session& session, const store::ClaimRequest& request, std::int64_t token,
                store::CallEnd& end, std::string& why);

// Logs that the answer of a call is not booked, because the key is not the call's any more.
// `answer`: null if it may not be shown.
void log_superseded(store::Session& session, const store::ClaimRequest& request, std::int64_t token,
                    const std::string* answer);

// Returns what becomes of the message. The caller may repeat it: `failed` holds the failed run once
// it is recorded.
// Precondition: the call has not ended as `answered`.
Outcome account_for_call(Attempt& attempt, const store::TakenCall& taken,
                         const outside::Ended& ended, std::optional<store::FailedRuns>& failed);

}  // namespace hapax::flow
