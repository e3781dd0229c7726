#include "console/bytes.hpp"

#include "key/sha256.hpp"
#include "observe/escape.hpp"

namespace hapax::console {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Without half a character at the end.
std::string_view whole_characters(std::string_view bytes, std::size_t most) {
  if (bytes.size() <= most) return bytes;
  while (most > 0 && continues(bytes[most])) --most;
  return bytes.substr(0, most);
}

}  // namespace

bool is_printable(std::string_view bytes) {
  std::string lines(bytes);
  for (char& c : lines)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return observe::escape_for_terminal(lines) == lines;
}

app::Json shown_bytes(const std::optional<std::string>& bytes, std::size_t most) {
  if (!bytes) return nullptr;
  app::Json shown = {{"bytes", bytes->size()}};
  if (is_printable(*bytes))
    shown["text"] = whole_characters(*bytes, most);
  else
    shown["hex"] = key::hex(std::string_view(*bytes).substr(0, most));
  shown["cut"] = bytes->size() > most;
  return shown;
}

}  // namespace hapax::console
