// Makes text from outside (keys, headers, error messages of handlers) safe to show.
//
// If a producer sends the key "\x1b[2J\x1b[1A…" and an operator runs `hapax dead list`, the
// terminal would show rows that do not exist. So no text from outside reaches a terminal or a log
// unescaped.
#pragma once

#include <string>
#include <string_view>

namespace hapax::observe {

// Returns `text` without characters that control a terminal or reorder what one reads. ASCII
// control characters (also ESC, newline and tab) and bytes that are not UTF-8 become \xNN. C1
// controls, bidirectional controls and Unicode's line separators become \u{NNNN}. All other text
// stays, backslashes too, so a shown key can be copied. But the text "\x1b" and the byte 0x1b look
// alike.
std::string escape_for_terminal(std::string_view text);

// As escape_for_terminal, between double quotes, with " and \ escaped: two texts never look alike.
std::string quote_for_terminal(std::string_view text);

// `text` with each byte that is not part of valid UTF-8 replaced by \xNN. For JSON and for labels.
std::string to_valid_utf8(std::string_view text);

}  // namespace hapax::observe
