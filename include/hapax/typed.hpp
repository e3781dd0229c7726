// What Message::as() finds beside nlohmann's own errors. Not for handlers: all of it may change.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

// Finds the member that a type's from_json could not read, which nlohmann's exceptions do not tell.
//
// It puts a kind of value that no text can hold into one place of the document and reads again. If
// the error names that kind, the type reads this place, and no later than the one that failed. So
// the last such place on each level holds the one that failed.
class [[gnu::visibility("hidden")]] FailedPlace {
 public:
  using json = nlohmann::json;
  // The text of the exception that the type's from_json throws for a document; empty if it throws
  // none of nlohmann's.
  using Read = std::function<std::string(const json&)>;

  // Reads `document` at most `tries` times.
  FailedPlace(json document, std::string error, std::size_t tries, Read read)
      : document_(std::move(document)),
        error_(std::move(error)),
        tries_(tries),
        read_(std::move(read)) {}

  // The place (JSON pointer) of the member, which may be missing. Empty if it was not found, and if
  // it is the whole document.
  std::string find() {
    json::json_pointer at;
    json* node = &document_;
    while (json* const child = last_read(*node, at)) node = child;
    constexpr std::string_view before = "key '", after = "' not found";
    if (const auto begin = error_.find(before); begin != error_.npos && error_.ends_with(after))
      return missing(at, error_.substr(begin + before.size(),
                                       error_.size() - begin - before.size() - after.size()));
    const std::string kind = node->type_name();
    const bool is_it =
        error_.ends_with(kind) && error_with(*node, json::value_t::discarded) ==
                                      error_.substr(0, error_.size() - kind.size()) + kDiscarded;
    return is_it ? at.to_string() : "";
  }

 private:
  static constexpr auto kDiscarded = "discarded", kBinary = "binary";  // nlohmann's names

  std::string error_with(json & place, json::value_t kind) {
    if (tries_ == 0) return "";
    --tries_;
    json value = std::exchange(place, json(kind));
    std::string error = read_(document_);
    place = std::move(value);
    return error;
  }

  bool is_read(json & place) {
    return error_with(place, json::value_t::discarded).ends_with(kDiscarded);
  }

  bool is_read_after(json & place, json & other) {
    json value = std::exchange(other, json(json::value_t::binary));
    const bool after = error_with(place, json::value_t::discarded).ends_with(kBinary);
    other = std::move(value);
    return after;
  }

  // The element or member of `node` that was read last, and its place; nothing if none was.
  json* last_read(json & node, json::json_pointer & at) {
    json* last = nullptr;
    std::string name;
    if (node.is_array() && node.size() > 16) {  // they are read one after the other
      const auto unread = std::partition_point(node.begin(), node.end(),
                                               [this](json& element) { return is_read(element); });
      if (unread == node.begin()) return nullptr;
      last = &*std::prev(unread);
      name = std::to_string(unread - node.begin() - 1);
    } else if (node.is_structured()) {
      for (auto& child : node.items()) {
        if (!is_read(child.value()) || (last && !is_read_after(child.value(), *last))) continue;
        last = &child.value();
        name = child.key();
      }
    }
    if (last) at /= name;
    return last;
  }

  // The place of the member `name`, which an object that holds `at`, or is it, lacks. A member that
  // need not be there can have the same name: its place is read, too, but earlier.
  std::string missing(json::json_pointer at, const std::string& name) {
    std::string found;
    json* last = nullptr;
    for (bool more = true; more; at = at.parent_pointer()) {
      more = !at.empty();
      json& node = document_.at(at);
      if (!node.is_object() || node.contains(name)) continue;
      if (is_read(node[name]) && (!last || is_read_after(node[name], (*last)[name]))) {
        if (last) last->erase(name);
        last = &node;
        found = (at / name).to_string();
      } else if (last) {
        last->erase(name);
      }
      node.erase(name);
    }
    return tries_ == 0 ? "" : found;
  }

  json document_;
  std::string error_;
  std::size_t tries_;
  Read read_;
};

}  // namespace hapax::detail
