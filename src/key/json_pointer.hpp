// JSON pointers (RFC 6901): checked when the configuration is read, followed for every message.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::key {

// Why `pointer` is not a JSON pointer, as a sentence without the pointer itself; nothing if it is
// one. "" is a pointer: the whole document.
// Thread safety: pure.
std::optional<std::string> json_pointer_error(std::string_view pointer);

// The value that `pointer` names in `document`, or nullptr if there is none. In arrays only an
// index without leading zeros names something; "-" (the element after the last) never does. What is
// not a JSON pointer names nothing.
// Lifetime: points into `document`.
// Thread safety: pure.
const nlohmann::json* find(const nlohmann::json& document, std::string_view pointer);

// Why `pattern` is not one, as json_pointer_error() tells. A pattern is a JSON pointer in which the
// name `*` is any member and any element. In a longer name a `*` would name nothing, so it is none.
// Thread safety: pure.
std::optional<std::string> json_pattern_error(std::string_view pattern);

// Calls `visit` with each value that `pattern` names in `document`. `visit` may replace the value.
// Thread safety: pure, if `visit` is. The stack grows with the number of names in `pattern`.
void for_each_match(nlohmann::json& document, std::string_view pattern,
                    const std::function<void(nlohmann::json&)>& visit);

}  // namespace hapax::key
