// hapax demo gate: clients that retry, a network that cuts, a gate and a worker that are killed.
#pragma once

#include "cli/command.hpp"

namespace hapax::app {

// Adds `gate` below `hapax demo`.
CLI::App* add_gate_demo(CLI::App& demo, CommandLine& line);

}  // namespace hapax::app
