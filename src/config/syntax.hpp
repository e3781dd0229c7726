// From text to JSON: comments are allowed, a name that comes twice in one object is not.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "config/problem.hpp"

namespace hapax::config {

// The document, or nothing and a problem with line and column. Names that come twice are problems
// too: JSON parsers keep the last, people read the first.
// Throws: std::bad_alloc. Thread safety: pure.
std::optional<nlohmann::json> parse(std::string_view text, std::vector<Problem>& problems);

}  // namespace hapax::config
