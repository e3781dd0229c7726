// Runs hapax's commands as an operator would, in a process of their own.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace hapax::support {

struct Said {
  int code = 0;
  std::string text;  // stdout and stderr
};

// `hapax <arguments>` with a configuration, with no terminal to ask on.
// Throws: std::runtime_error if it ends by a signal, or not in time.
Said hapax(std::vector<std::string> arguments, const std::filesystem::path& config,
           std::chrono::milliseconds timeout = std::chrono::seconds(180));

}  // namespace hapax::support
