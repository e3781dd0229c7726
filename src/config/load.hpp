// Reads the configuration: one JSON file with comments, ${VARIABLES} and @/paths/to/secrets.
//
// Every mistake is found in one reading, because somebody fixes this at night. If a worker named
// one typo for each deploy, that would take hours. Unknown names are mistakes: a setting that is
// silently not read would run with its default.
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
  std::optional<Config> config;  // there exactly where `problems` is empty
  std::vector<Problem> problems;
  std::vector<Route> routes = {};     // as far as they can be read, if `config` is not there
  std::vector<std::string> warnings;  // sentences: secrets that others on this machine can read
};

// `text`: what would stand in the file. Reads the files that @ names.
// Throws: std::bad_alloc. Blocks: on those files. Thread safety: safe, where `environment` is.
Loaded load_text(std::string_view text, const Environment& environment);

// The same for a file; a file that cannot be read is a problem too. The relative paths of
// plugins and schemas begin in the file's folder.
Loaded load_file(const std::string& path, const Environment& environment);

}  // namespace hapax::config
