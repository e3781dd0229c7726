// Bytes of a message as the page shows them: text only if it is safe to read, else hex. They are
// never interpreted.
//
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cli/output.hpp"

namespace hapax::console {

// Of a payload. What is beyond is behind a link.
inline constexpr std::size_t kShownPayload = 64 << 10;
// Of a record key, and of a header's name and value.
inline constexpr std::size_t kShownField = 4 << 10;

// UTF-8 without control characters, but for tab and line ends, and without what reorders text.
bool is_printable(std::string_view bytes);

// {"bytes": how many, "text": …} if all of it is printable, else {"bytes", "hex"}; at most the
// first `most` bytes of it, and then {"cut": true}. null stays null.
app::Json shown_bytes(const std::optional<std::string>& bytes, std::size_t most);

}  // namespace hapax::console
