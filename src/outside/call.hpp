// One call to the other side, or the question what became of an earlier one.
#pragma once

#include <string>

#include "hapax/outside.hpp"
#include "key/identity.hpp"
#include "outside/policy.hpp"

namespace hapax::outside {

// The idempotency key that the other side gets: 64 hexadecimal digits.
std::string key_to_hand_on(const std::string& scope, const key::Identity& identity);

// Calls, or reconciles and then calls if it was not done. Throws: nothing of the handler's.
// Blocks: as long as the handler. Precondition: `step` is call or reconcile.
Ended make_call(OutsideHandler& handler, const Message& message, const Call& call, Step step);

}  // namespace hapax::outside
