// Reads the configuration: one JSON file with comments, ${VARIABLES} and @/paths/to/secrets.
//
// It reports all mistakes at once, because an operator may have to fix them at night. If a worker
// named one typo for each deploy, that would take hours. Unknown names are mistakes, too. If hapax
// ignored them silently, it would run with the default.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/expand.hpp"
#include "config/problem.hpp"

namespace hapax::config {

struct Loaded {
  std::optional<Config> config;  // set if and only if `problems` is empty
  std::vector<Problem> problems;
  std::vector<Route> routes = {};  // if `config` is not set: those that could be read
  // Sentences about secrets that other users of this machine can read.
  std::vector<std::string> warnings;
};

// `text`: the content of the file. Reads the files that @ names.
// Throws: std::bad_alloc. Blocks: on those files. Thread safety: safe, if `environment` is.
Loaded load_text(std::string_view text, const Environment& environment);

// The same for a file. If it cannot be read, that is one of the problems. Relative paths of plugins
// and schemas begin in the file's folder.
Loaded load_file(const std::string& path, const Environment& environment);

}  // namespace hapax::config
