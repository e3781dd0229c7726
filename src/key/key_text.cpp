#include "key/key_text.hpp"

#include <algorithm>

#include "key/sha256.hpp"

namespace hapax::key {
namespace {

constexpr char kMark = ':';  // begins every stored key that is not its own bytes

bool is_follower(std::string_view bytes, std::size_t at) {
  return at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80;
}

// The length of the printable character at `at`: valid UTF-8 (no overlong form, no surrogate, at
// most U+10FFFF) and not a control character. 0 if there is none.
std::size_t printable_length(std::string_view bytes, std::size_t at) {
  const auto lead = static_cast<unsigned char>(bytes[at]);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;
  const auto second = is_follower(bytes, at + 1) ? static_cast<unsigned char>(bytes[at + 1]) : 0;
  if (second == 0 || lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return lead == 0xC2 && second < 0xA0 ? 0 : 2;
  if (!is_follower(bytes, at + 2)) return 0;
  if (lead < 0xF0) {
    const bool overlong = lead == 0xE0 && second < 0xA0;
    const bool surrogate = lead == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (!is_follower(bytes, at + 3)) return 0;
  const bool overlong = lead == 0xF0 && second < 0x90;
  const bool beyond = lead == 0xF4 && second > 0x8F;
  return overlong || beyond ? 0 : 4;
}

bool is_printable(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t length = printable_length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

// In quotes; what is not printable becomes \xNN, so that the text can be read back in one way only.
void append_quoted(std::string& text, std::string_view bytes) {
  text += '"';
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = printable_length(bytes, at);
    if (length == 0) {
      text += "\\x";
      text += hex(bytes.substr(at, 1));
    } else {
      if (bytes[at] == '"' || bytes[at] == '\\') text += '\\';
      text += bytes.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  text += '"';
}

void append_part(std::string& text, const Part& part) {
  if (part.type == Part::Type::bytes)
    append_quoted(text, part.text);
  else
    text += part.text;
}

std::string bounded(std::string text) {
  if (text.size() <= kMaxStoredKey) return text;
  return kMark + ("sha256:" + hex(sha256(text)));
}

}  // namespace

std::string encode_key(std::string_view bytes) {
  if (!bytes.empty() && bytes[0] != kMark && is_printable(bytes))
    return bounded(std::string(bytes));
  std::string text(1, kMark);
  append_quoted(text, bytes);
  return bounded(std::move(text));
}

std::string encode_part(const Part& part) {
  return part.type == Part::Type::bytes ? encode_key(part.text) : bounded(kMark + part.text);
}

std::string encode_parts(std::string_view tag, std::span<const Part> parts) {
  std::string text(1, kMark);
  text += tag;
  text += '(';
  for (const Part& part : parts) {
    if (&part != parts.data()) text += ',';
    append_part(text, part);
  }
  text += ')';
  return bounded(std::move(text));
}

}  // namespace hapax::key
