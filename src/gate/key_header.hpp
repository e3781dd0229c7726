// Reads the header `Idempotency-Key`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "gate/request.hpp"

namespace hapax::gate {

// No key of a client has more bytes.
inline constexpr std::size_t kMaxKey = 255;

// `values`: of all headers of that name. A key is a structured string (RFC 8941), as
// draft-ietf-httpapi-idempotency-key-header has it, or the same without its quotes. Both are one
// key. An Answer: why there is no key. Pure.
std::variant<std::string, Answer> key_of(std::span<const std::string_view> values);

}  // namespace hapax::gate
