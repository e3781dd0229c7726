// SHA-256, on the path of every message.
#pragma once

#include <string>
#include <string_view>

namespace hapax::key {

// 32 bytes.
// Throws: std::bad_alloc; std::runtime_error if OpenSSL has no SHA-256 (a broken installation).
// Thread safety: safe; each thread keeps one context.
std::string sha256(std::string_view bytes);

// Lower case, two digits a byte.
std::string hex(std::string_view bytes);

// Compares in a time that does not depend on the first difference. Thread safety: pure.
bool same_digest(std::string_view a, std::string_view b);

}  // namespace hapax::key
