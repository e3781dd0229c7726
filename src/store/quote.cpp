#include "store/quote.hpp"

#include "store/fault.hpp"

namespace hapax::store {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// E'…' reads the same whatever standard_conforming_strings a handler has set, and bytes beyond
// ASCII go as \xHH: read as another client_encoding, a key would be another key.
void append_quoted(std::string& text, std::string_view value) {
  if (value.find('\0') != std::string_view::npos)
    throw DatabaseError({Fault::Kind::sql, "22021",
                         "a parameter holds a NUL byte, which PostgreSQL text cannot; pass bytes "
                         "with hapax::Parameter::bytes to a bytea"});
  text += "E'";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
      continue;
    }
    if (c == '\'' || c == '\\') text += c;
    text += c;
  }
  text += '\'';
}

}  // namespace

// One element of an array literal, quoted whatever its type: PostgreSQL reads it as the array's
// cast says.
void append_array_element(std::string& array, const Parameter& value) {
  if (array.size() > 1) array += ',';
  if (!value.text()) {
    array += "NULL";
    return;
  }
  array += '"';
  for (const char c : *value.text()) {
    if (c == '"' || c == '\\') array += '\\';
    array += c;
  }
  array += '"';
}

std::string bytes_of_hex(std::string_view hex) {
  const auto digit = [&](std::size_t i) {
    return static_cast<unsigned>(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
  };
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(i) << 4U | digit(i + 1));
  return bytes;
}

std::string execute_text(const std::string& name, const std::vector<Parameter>& values) {
  std::string text = "EXECUTE " + name;
  const char* separator = "(";
  for (const Parameter& value : values) {
    text += separator;
    separator = ",";
    if (value.text()) {
      append_quoted(text, *value.text());
    } else {
      text += "NULL";
    }
  }
  if (!values.empty()) text += ')';
  return text;
}

}  // namespace hapax::store
