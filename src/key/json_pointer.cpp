#include "key/json_pointer.hpp"

#include <algorithm>
#include <charconv>

namespace hapax::key {
namespace {

// ~1 is a slash, ~0 a tilde; one pass, so that ~01 is ~1 and not a slash.
std::string unescaped(std::string_view token) {
  std::string name;
  name.reserve(token.size());
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size())
      name += token[++i] == '1' ? '/' : '~';
    else
      name += token[i];
  }
  return name;
}

// Of a constant array or not; so, too, below.
auto* element(auto& array, std::string_view token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool whole = error == std::errc{} && end == token.data() + token.size();
  const bool there = whole && (token.size() == 1 || token[0] != '0') && index < array.size();
  return there ? &array[index] : nullptr;
}

auto* member(auto& object, std::string_view token) {
  const auto found = object.find(unescaped(token));
  return found == object.end() ? nullptr : &*found;
}

// The first name of a pointer that is not empty, which goes on behind it.
std::string_view take_token(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::string_view token = pointer.substr(0, pointer.find('/'));
  pointer.remove_prefix(token.size());
  return token;
}

// The value under one name, or nullptr.
auto* child(auto& value, std::string_view token) {
  if (value.is_object()) return member(value, token);
  return value.is_array() ? element(value, token) : nullptr;
}

}  // namespace

std::optional<std::string> json_pointer_error(std::string_view pointer) {
  if (pointer.empty()) return std::nullopt;
  if (pointer[0] != '/') return "a JSON pointer starts with '/' (or is empty: the whole document)";
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] != '~') continue;
    const char next = i + 1 < pointer.size() ? pointer[i + 1] : '\0';
    if (next != '0' && next != '1')
      return "in a JSON pointer '~' is written ~0 and '/' inside a name ~1; a bare '~' means "
             "nothing";
  }
  return std::nullopt;
}

std::optional<std::string> json_pattern_error(std::string_view pattern) {
  if (auto error = json_pointer_error(pattern)) return error;
  while (!pattern.empty())
    if (const auto token = take_token(pattern);
        token != "*" && token.find('*') != std::string_view::npos)
      return "'*' stands for one whole name; write a pointer for each depth";
  return std::nullopt;
}

const nlohmann::json* find(const nlohmann::json& document, std::string_view pointer) {
  if (json_pointer_error(pointer)) return nullptr;
  const nlohmann::json* value = &document;
  while (value != nullptr && !pointer.empty()) {
    const std::string_view token = take_token(pointer);
    value = child(*value, token);
  }
  return value;
}

void for_each_match(nlohmann::json& document, std::string_view pattern,
                    const std::function<void(nlohmann::json&)>& visit) {
  if (json_pointer_error(pattern)) return;
  if (pattern.empty()) return visit(document);
  const std::string_view token = take_token(pattern);
  if (token != "*") {
    if (auto* const value = child(document, token)) for_each_match(*value, pattern, visit);
  } else if (document.is_object() || document.is_array()) {
    for (nlohmann::json& value : document) for_each_match(value, pattern, visit);
  }
}

}  // namespace hapax::key
