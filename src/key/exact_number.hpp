// The one canonical text of a JSON number, by its exact decimal value. 1, 1.0, 1e0 and 100e-2 are
// "1"; -0 is "0"; 9007199254740993 stays itself. Nothing goes through a double, because a double
// merges account numbers beyond 2^53, and two merged keys are a lost message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hapax::key {

// At most this many zeros are written to spare an exponent: 1e20 is written out, 1e21 is "1e21".
// So the text is never much longer than the number was, for any exponent.
inline constexpr int kMaxAddedZeros = 20;

// `number` must be a JSON number (RFC 8259). Its decimal point may be any byte, because nlohmann's
// lexer writes the one of the process's locale, and a handler may have set that.
// Nothing if the exponent has more than 18 digits: such values cannot be told apart in 64 bits.
// Thread safety: pure.
std::optional<std::string> canonical_number(std::string_view number);

}  // namespace hapax::key
