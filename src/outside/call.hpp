// One call to the other side, or the question what became of an earlier one.
#pragma once

#include <functional>
#include <string>

#include "hapax/outside.hpp"
#include "key/identity.hpp"
#include "outside/policy.hpp"

namespace hapax::outside {

// The idempotency key that the other side gets: 64 hexadecimal digits.
std::string key_to_hand_on(const std::string& scope, const key::Identity& identity);

// Calls; or reconciles, and then calls if the operation was not done. `may_call`: called right
// before the call.
// Throws: nothing of the handler's. Blocks: as long as the handler.
// Precondition: `step` is call or reconcile.
Ended make_call(OutsideHandler& handler, const Message& message, const Call& call, Step step,
                const std::function<bool()>& may_call);

// If PostgreSQL cannot keep an answer (too large, nested too deep), the call ends as if it had
// failed.
Ended not_kept(const std::string& why);

}  // namespace hapax::outside
