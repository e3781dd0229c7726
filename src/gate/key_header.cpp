#include "gate/key_header.hpp"

#include <algorithm>
#include <optional>

#include "gate/problem.hpp"
#include "key/key_source.hpp"

namespace hapax::gate {
namespace {

Answer bad_key(const std::string& detail) {
  return refused(400, "bad-key", "The idempotency key cannot be used", detail);
}

std::string_view trimmed(std::string_view value) {
  const std::size_t first = value.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return value.substr(first, value.find_last_not_of(" \t") - first + 1);
}

// Nothing: it is neither spelling.
std::optional<std::string> read(std::string_view value) {
  value = trimmed(value);
  if (value.starts_with('"')) return key::unquoted(value);
  const bool visible =
      std::ranges::all_of(value, [](char c) { return c > 0x20 && c < 0x7F && c != '"'; });
  return visible ? std::optional(std::string(value)) : std::nullopt;
}

}  // namespace

std::variant<std::string, Answer> key_of(std::span<const std::string_view> values) {
  if (values.empty())
    return refused(400, "key-missing", "An idempotency key is missing",
                   "Send the header Idempotency-Key. A retry sends the same one again.");
  std::optional<std::string> key;
  for (const std::string_view value : values) {
    auto one = read(value);
    if (!one)
      return bad_key(
          "The key must be visible ASCII, or a quoted string in which \\ stands before \" and \\.");
    if (key && *key != *one) return bad_key("The request has two different keys.");
    key = std::move(one);
  }
  if (key->empty()) return bad_key("The key is empty.");
  if (key->size() > kMaxKey)
    return bad_key("The key has " + std::to_string(key->size()) + " bytes, and may have 255.");
  return *std::move(key);
}

}  // namespace hapax::gate
