// Types what a page tells an operator to type, so that a runbook cannot be wrong for long.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/command.hpp"

namespace hapax::support {

// The blocks of shell commands under this heading ("## Erasing personal data") of
// docs/operating.md, in their order. Throws: std::runtime_error if there are none.
std::vector<std::string> commands_under(const std::string& heading);

// Runs a block by a shell that stops at the first failure. It runs in `folder`, which holds
// worker.json, with this hapax in PATH, and with the tree's files in the place of the installed.
// Throws: std::runtime_error if it ends by a signal or not in time.
Said type(const std::string& commands, const std::filesystem::path& folder,
          std::map<std::string, std::string> variables);

}  // namespace hapax::support
