// What Message::as() finds beside nlohmann's own errors. Not for handlers: all of it may change.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hapax::detail {

[[gnu::visibility("hidden")]] inline bool is_negative(const nlohmann::json& integer) {
  return !integer.is_number_unsigned() && integer.get<std::int64_t>() < 0;
}

// Equal numbers have equal texts, also an integer and a float. nlohmann compares these as doubles,
// of which an integer above 2^53 may have the neighbour's value.
[[gnu::visibility("hidden")]] inline std::string number_text(const nlohmann::json& number) {
  if (!number.is_number_float()) return number.dump();
  const double value = number.get<double>();
  const bool is_integer = std::floor(value) == value && value >= -0x1p63 && value < 0x1p64;
  if (!is_integer) return number.dump();
  return value < 0 ? std::to_string(static_cast<std::int64_t>(value))
                   : std::to_string(static_cast<std::uint64_t>(value));
}

// What a member of type float makes of a fraction; integers stay exact.
[[gnu::visibility("hidden")]] inline double as_float(double value) {
  const bool is_fraction = std::floor(value) != value;
  return is_fraction ? static_cast<double>(static_cast<float>(value)) : value;
}

// If `read` is what a type keeps of `document`.
[[gnu::visibility("hidden")]] inline bool same_number(const nlohmann::json& document,
                                                      const nlohmann::json& read) {
  if (document.is_number_float() && read.is_number_float())
    return document == read || as_float(document.get<double>()) == read.get<double>();
  if (document.is_number_float() != read.is_number_float())
    return number_text(document) == number_text(read);
  // nlohmann takes 2^64 - 1 for -1 when it compares.
  if (document.is_number_integer() && read.is_number_integer() &&
      is_negative(document) != is_negative(read))
    return false;
  return document == read;
}

// Adds the numbers in `value`, each with the names of the members that lead to it.
[[gnu::visibility("hidden")]] inline void add_numbers(const nlohmann::json& value,
                                                      const std::string& names,
                                                      std::vector<std::string>& numbers) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items())
      add_numbers(member, names + name + '\0', numbers);
  } else if (value.is_array()) {
    for (const auto& element : value) add_numbers(element, names, numbers);
  } else if (value.is_number_float()) {
    numbers.push_back(names + number_text(as_float(value.get<double>())));
  } else if (value.is_number()) {
    numbers.push_back(names + value.dump());
  }
}

// If the array `read` holds numbers of the array `document` in another order, as a set and a map
// make one. A set drops equal elements, too.
[[gnu::visibility("hidden")]] inline bool is_in_other_order(const nlohmann::json& document,
                                                            const nlohmann::json& read) {
  std::vector<std::string> before, after;
  add_numbers(document, {}, before);
  add_numbers(read, {}, after);
  std::ranges::sort(before);
  std::ranges::sort(after);
  if (!std::ranges::includes(before, after)) return false;
  const auto is_number = [](const nlohmann::json& element) { return element.is_number(); };
  if (!std::ranges::all_of(document, is_number)) return true;
  return std::ranges::all_of(
      before, [&](const std::string& number) { return std::ranges::binary_search(after, number); });
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
      if (auto changed = changed_number(document[i], read[i], at / i)) {
        if (is_in_other_order(document, read)) return std::nullopt;
        return changed;
      }
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
