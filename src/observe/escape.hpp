// Text that came from outside (keys, headers, error messages of handlers) made safe to show.
//
// A: a producer sends the key "\x1b[2J\x1b[1A…"; an operator runs `hapax dead list` and the
// terminal shows rows that were never there. So nothing from outside reaches a terminal or a log
// unescaped.
#pragma once

#include <string>
#include <string_view>

namespace hapax::observe {

// `text` without anything that steers a terminal or reorders what is read: ASCII control characters
// (ESC, newline and tab too) and bytes that are not UTF-8 come out as \xNN, C1 controls,
// bidirectional controls and Unicode's line separators as \u{NNNN}. All other text, backslashes
// too, stays as it is: so a shown key can be copied, but the text "\x1b" and the byte 0x1b look
// alike.
std::string escape_for_terminal(std::string_view text);

// As escape_for_terminal, between double quotes, with " and \ escaped: two texts never look alike.
std::string quote_for_terminal(std::string_view text);

// `text` with each byte that is not part of valid UTF-8 replaced by \xNN. For JSON and for labels.
std::string to_valid_utf8(std::string_view text);

}  // namespace hapax::observe
