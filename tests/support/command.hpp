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

// The same for an order that asks: by the role of `url`, with a reason, and without a question.
// Fails the test if its exit code is not 0. Returns what it printed.
std::string order(std::vector<std::string> arguments, const std::filesystem::path& config,
                  const std::string& url);

}  // namespace hapax::support
