// What Message::as() finds beside nlohmann's own errors. Not for handlers: all of it may change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace hapax::detail {

[[gnu::visibility("hidden")]] inline bool is_negative(const nlohmann::json& integer) {
  return !integer.is_number_unsigned() && integer.get<std::int64_t>() < 0;
}

[[gnu::visibility("hidden")]] inline bool same_number(const nlohmann::json& a,
                                                      const nlohmann::json& b) {
  // nlohmann takes 2^64 - 1 for -1 when it compares.
  if (a.is_number_integer() && b.is_number_integer() && is_negative(a) != is_negative(b))
    return false;
  return a == b;
}

// One number of `document` that is another one in `read`, which a type made of the document. The
// text tells its place and both values; nothing if there is none. nlohmann makes 12 of 12.7, 1 of
// true, and a negative number of one that is too large.
[[gnu::visibility("hidden")]] inline std::optional<std::string> changed_number(
    const nlohmann::json& document, const nlohmann::json& read,
    const nlohmann::json::json_pointer& at = nlohmann::json::json_pointer()) {
  if (read.is_object() && document.is_object()) {
    for (const auto& [name, member] : read.items()) {
      const auto there = document.find(name);
      if (there == document.end()) continue;
      if (auto changed = changed_number(*there, member, at / name)) return changed;
    }
  } else if (read.is_array() && document.is_array()) {
    for (std::size_t i = 0; i < std::min(read.size(), document.size()); ++i)
      if (auto changed = changed_number(document[i], read[i], at / i)) return changed;
  } else if (read.is_number() && (document.is_number() || document.is_boolean()) &&
             !same_number(document, read)) {
    return at.to_string() + " is " + document.dump() + ", which its type would make " + read.dump();
  }
  return std::nullopt;
}

// A place (JSON pointer) at which `document` has another kind of value than `example`; nothing if
// there is none. `example` is what an empty T becomes. Elements of arrays have no example.
[[gnu::visibility("hidden")]] inline std::optional<std::string> other_kind(
    const nlohmann::json& document, const nlohmann::json& example,
    const nlohmann::json::json_pointer& at = nlohmann::json::json_pointer()) {
  if (example.is_object() && document.is_object()) {
    for (const auto& [name, member] : example.items())
      if (const auto there = document.find(name); there != document.end())
        if (auto other = other_kind(*there, member, at / name)) return other;
    return std::nullopt;
  }
  const bool same = example.is_null() || document.type() == example.type() ||
                    (document.is_number() && example.is_number());
  return same ? std::nullopt : std::optional(at.to_string());
}

}  // namespace hapax::detail
