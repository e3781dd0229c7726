// "Did you mean": the known name that a mistyped one was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hapax::config {

// The candidate nearest to `name`, or "" if none is near: at most a third of its letters differ
// (inserted, left out, replaced, swapped). Case, '_', '-' and '.' do not count, so maxAttempts is
// max_attempts.
// Thread safety: pure.
std::string closest(std::string_view name, std::span<const std::string> candidates);

}  // namespace hapax::config
