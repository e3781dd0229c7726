// Which values a setting may have. Each rule makes a program's value of a value in the document, or
// names the allowed values.
//
// A number or boolean may also be a string with a ${VARIABLE} or an @file in it. A plain string in
// place of a number is a mistake.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/reader.hpp"
#include "config/suggest.hpp"

namespace hapax::config {

// Not empty, at most `longest` bytes.
struct Text {
  std::string what = "a string that is not empty";
  std::size_t longest = 4'096;
  bool may_be_blank = false;  // may consist of spaces and tabs only
  std::optional<std::string> operator()(Reader& reader, const Value& value) const;
};

struct Flag {
  std::optional<bool> operator()(Reader& reader, const Value& value) const;
};

// Bounds are inclusive, here and below.
struct Whole {
  std::uint64_t min;
  std::uint64_t max;
  std::optional<std::uint64_t> operator()(Reader& reader, const Value& value) const;
};

struct Duration {
  std::chrono::milliseconds min;
  std::chrono::milliseconds max;
  std::optional<std::chrono::milliseconds> operator()(Reader& reader, const Value& value) const;
};

// Bytes: a number, or a string with a unit.
struct Size {
  std::uint64_t min;
  std::uint64_t max;
  std::optional<std::uint64_t> operator()(Reader& reader, const Value& value) const;
};

// One of a few words. `others`: other values that are allowed, for the message.
template <class Enum>
struct Choice {
  std::vector<std::pair<std::string, Enum>> words;
  std::string others = "";

  std::optional<Enum> operator()(Reader& reader, const Value& value) const {
    std::vector<std::string> names;
    std::string allowed;
    for (const auto& [name, meaning] : words) {
      names.push_back(name);
      allowed += (allowed.empty() ? "\"" : ", \"") + name + "\"";
    }
    allowed += others;
    const auto found = reader.text(value, allowed);
    if (!found) return std::nullopt;
    for (const auto& [name, meaning] : words)
      if (name == *found) return meaning;
    const std::string near = closest(*found, names);
    reader.refuse(value, allowed + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    return std::nullopt;
  }
};

}  // namespace hapax::config
