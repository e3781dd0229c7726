// What `hapax gate` and `hapax check` make of a gate's configuration.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "config/gate.hpp"
#include "gate/operations.hpp"
#include "gate/tls.hpp"

namespace hapax::app {

// Nothing if no route accepts. Throws: Stop(kConfigWrong).
std::optional<gate::Operations> operations_of(const config::GateConfig& config);

// Null for plain HTTP. Throws: Stop(kConfigWrong), if a file of gate.tls cannot be used.
std::unique_ptr<gate::Tls> tls_of(const config::GateConfig& config);

}  // namespace hapax::app
