// Calls to the outside that are not done, as `hapax status` counts them.
#pragma once

#include <string>

#include "cli/output.hpp"
#include "config/config.hpp"
#include "store/session.hpp"

namespace hapax::app {

// Null if no route calls to the outside and no call of an earlier release is open. Throws:
// DatabaseError.
Json calls_state(const config::Config& config, store::Session& session);

// Precondition: not null.
std::string calls_line(const Json& calls);

}  // namespace hapax::app
