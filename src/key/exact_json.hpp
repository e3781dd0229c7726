// Reads JSON, and keeps all that a key or fingerprint could depend on. Numbers keep their exact
// decimal value. It refuses a member name that comes twice, because amount 1 then 2 must not equal
// amount 2 then 1. Strings are strict UTF-8, and nesting is capped.
//
// The result is a nlohmann::json. An integer that fits into 64 bits is a number as usual. Every
// other number is a `binary` value with its canonical text (exact_number.hpp). JSON itself has no
// binary values, so no other value can look like one.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace hapax::key {

// Why a text is not JSON as keys need it: a sentence that names the byte. It holds no bytes of the
// payload, because they may be secret and need not be text.
struct NotJson {
  std::string why;
};

// Refuses what RFC 8259 refuses, and also:
// - duplicate member names, and nesting beyond kMaxJsonDepth;
// - numbers that overflow a double, such as 1e400: nlohmann's lexer does not pass them on, and
//   Message::json() refuses them, too;
// - exponents of more than 18 digits.
// Skips a leading UTF-8 byte order mark, as Message::json() does.
// Memory: proportional to `text`; the stack does not grow with nesting.
// Throws: std::bad_alloc.
// Thread safety: pure.
std::variant<nlohmann::json, NotJson> parse_exact(std::string_view text);

// The canonical text of a number in such a value.
// Precondition: is_exact_number(value).
std::string number_text(const nlohmann::json& value);
bool is_exact_number(const nlohmann::json& value);

}  // namespace hapax::key
