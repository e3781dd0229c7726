// The handler of a route with "accept": makes a record of the request, for a worker.
#pragma once

#include <vector>

#include "config/gate.hpp"
#include "gate/operations.hpp"
#include "hapax/handler.hpp"

namespace hapax::gate {

// hapax's own handlers for routes of a gate: kAcceptHandler and kOperationsHandler. Both arguments
// outlive the handlers.
std::vector<HandlerFactory> own_handlers(const config::Gate& gate, const Operations* operations);

}  // namespace hapax::gate
