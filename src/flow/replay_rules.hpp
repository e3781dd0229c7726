// Why the replay of a dead letter must not run, see "Replaying a dead letter" in
// docs/guarantees.md. Each returns a sentence for the operator, or nothing. Throws: DatabaseError
// (Phase::claim).
#pragma once

#include <optional>
#include <string>

#include "flow/route.hpp"
#include "store/message/claim.hpp"
#include "store/message/replays.hpp"
#include "store/transaction.hpp"

namespace hapax::flow {

// Decides by the key that the replay would take. `holder`: the row that has it.
std::optional<std::string> refusal(const store::ClaimedReplay& claimed, const Route& route,
                                   const store::ReplayedLetter& letter,
                                   const store::ClaimRequest& request,
                                   const std::optional<store::KeyHolder>& holder,
                                   store::Transaction& transaction);

// On a route that calls. An edited payload may give another key than the letter's own. So another
// call for the letter may not be done: under its own key, or under that of an earlier replay. Or
// the call under this key, or steps of it, may be of another payload.
std::optional<std::string> refusal_of_other_call(
    const store::ClaimedReplay& claimed, const Route& route, const store::ReplayedLetter& letter,
    const store::ClaimRequest& request, const Message& message, store::Transaction& transaction);

// Puts the replay back, until a worker whose route calls takes it: a call of the letter is open,
// and this route does not call. An operator has decided about the call, or the replay has made it.
// Nothing: it need not wait.
std::optional<store::ReplayNote> put_back_for_caller(const store::ClaimedReplay& claimed,
                                                     const Route& route,
                                                     const store::ClaimRequest& request,
                                                     store::Transaction& transaction);

// The sentence for a letter without bytes to run. Its null payload would look like a tombstone.
std::string without_bytes(const store::Source& source);

}  // namespace hapax::flow
