// A part of hapax offsets with a file of its own.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace hapax::app {

void add_forget_group(CLI::App& offsets, CommandLine& line);

}  // namespace hapax::app
