#include "observe/escape.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace hapax::observe {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;  // false: the first byte starts no valid UTF-8 sequence
};

// Strict as in RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF.
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, bytes, true};
}

bool is_ascii_control(std::uint32_t c) { return c < 0x20 || c == 0x7F; }

// C1 controls, bidirectional marks, embeddings, overrides and isolates, line separators, BOM.
bool steers_the_reader(std::uint32_t c) {
  return (c >= 0x80 && c <= 0x9F) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

void append_number(std::string& out, const char* format, std::uint32_t number) {
  char buffer[16];
  const int length = std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(number));
  out.append(buffer, static_cast<std::size_t>(length));
}

enum class Escape { invalid_only, unsafe, unsafe_and_quotes };

std::string escape(std::string_view text, Escape what) {
  std::string out;
  out.reserve(text.size() + 2);
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const std::string_view bytes = text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
    if (!c.valid) {
      append_number(out, "\\x%02x", static_cast<std::uint8_t>(bytes[0]));
    } else if (what == Escape::invalid_only) {
      out += bytes;
    } else if (is_ascii_control(c.value)) {
      append_number(out, "\\x%02x", c.value);
    } else if (steers_the_reader(c.value)) {
      append_number(out, "\\u{%x}", c.value);
    } else {
      if (what == Escape::unsafe_and_quotes && (c.value == '"' || c.value == '\\')) out += '\\';
      out += bytes;
    }
  }
  return out;
}

}  // namespace

std::string escape_for_terminal(std::string_view text) { return escape(text, Escape::unsafe); }

std::string quote_for_terminal(std::string_view text) {
  return '"' + escape(text, Escape::unsafe_and_quotes) + '"';
}

std::string to_valid_utf8(std::string_view text) { return escape(text, Escape::invalid_only); }

}  // namespace hapax::observe
