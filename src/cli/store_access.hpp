// What the operator's commands share on the way to hapax's tables.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace hapax::app {

// A session on a schema that this binary knows. `url`: another role than the worker's; empty: the
// configuration's. Throws: Stop(kUnreachable).
store::Session open_store(const config::Config& config, const std::string& url = {});

// Throws: Stop(kConfigWrong) if it is of a gate that has none.
const std::string& group_of(const config::Config& config);

// Throws: Stop(kUsage) if it is no duration such as 90s, 1h or 7d.
std::chrono::seconds duration_option(const std::string& option, const std::string& text);

}  // namespace hapax::app
