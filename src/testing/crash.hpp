// A worker process that dies: a forked child, killed at a named point.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "hapax/testing.hpp"

namespace hapax::testing {

// Runs `deliver` in a child that kills itself at `point`. Nothing if it did; else how it ended.
// The child must use no connection of ours. Throws: std::system_error. Blocks: at most a minute.
std::optional<std::string> crash_in_child(CrashPoint point,
                                          const std::function<Outcome()>& deliver);

}  // namespace hapax::testing
