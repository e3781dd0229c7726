// What this binary is made of.
#pragma once

#include <string>

#include "observe/metrics.hpp"

namespace hapax::app {

observe::Versions versions();

// For `--version`: a line each.
std::string version_text();

}  // namespace hapax::app
