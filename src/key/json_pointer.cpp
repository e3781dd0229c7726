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

const nlohmann::json* element(const nlohmann::json& array, std::string_view token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool whole = error == std::errc{} && end == token.data() + token.size();
  if (!whole || (token.size() > 1 && token[0] == '0') || index >= array.size()) return nullptr;
  return &array[index];
}

const nlohmann::json* member(const nlohmann::json& object, std::string_view token) {
  const auto found = object.find(unescaped(token));
  return found == object.end() ? nullptr : &*found;
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

const nlohmann::json* find(const nlohmann::json& document, std::string_view pointer) {
  if (json_pointer_error(pointer)) return nullptr;
  const nlohmann::json* value = &document;
  while (value != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string_view token = pointer.substr(0, end);
    pointer.remove_prefix(end);
    if (value->is_object())
      value = member(*value, token);
    else
      value = value->is_array() ? element(*value, token) : nullptr;
  }
  return value;
}

}  // namespace hapax::key
