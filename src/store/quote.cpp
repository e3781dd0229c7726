#include "store/quote.hpp"

namespace hapax::store {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void append_hex(std::string& text, unsigned char byte) {
  text += kHex[byte >> 4];
  text += kHex[byte & 15];
}

void append_hex_escape(std::string& text, unsigned char byte) {
  text += "\\x";
  append_hex(text, byte);
}

// Bytes that an E'…' has as \xHH. Those beyond ASCII, because a handler may have set
// client_encoding, which would change a key. And NUL, which PostgreSQL then refuses. If hapax
// refused it, a handler that catches the error would go on in a transaction that is not aborted.
bool is_escaped(unsigned char byte) { return byte >= 0x80 || byte == 0; }

// E'…' does not depend on standard_conforming_strings, which a handler may have set.
void append_quoted(std::string& text, std::string_view value) {
  text += "E'";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_escaped(byte)) {
      append_hex_escape(text, byte);
      continue;
    }
    if (c == '\'' || c == '\\') text += c;
    text += c;
  }
  text += '\'';
}

}  // namespace

// Appends one element of an array literal. It is quoted in any case, and the array's cast decides
// its type.
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

void ArrayLiteral::add(std::string_view text) {
  begin_element();
  text_ += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '\'': text_ += "''"; break;
      case '"': text_ += "\\\\\""; break;     // the array's backslash, doubled by the literal
      case '\\': text_ += "\\\\\\\\"; break;  // doubled by both
      default: is_escaped(byte) ? append_hex_escape(text_, byte) : void(text_ += c);
    }
  }
  text_ += '"';
}

void ArrayLiteral::add(std::int64_t number) {
  begin_element();
  text_ += std::to_string(number);
}

void ArrayLiteral::add_bytes(std::string_view bytes) {
  begin_element();
  text_ += "\"\\\\\\\\x";  // \x
  for (const char c : bytes) append_hex(text_, static_cast<unsigned char>(c));
  text_ += '"';
}

void ArrayLiteral::add_null() {
  begin_element();
  text_ += "NULL";
}

std::string ArrayLiteral::text() && {
  text_ += "}'";
  return std::move(text_);
}

std::string text_literal(std::string_view value) {
  std::string text;
  append_quoted(text, value);
  return text;
}

Parameter seconds_or_null(const std::optional<std::chrono::seconds>& seconds) {
  return seconds ? Parameter(seconds->count()) : Parameter(nullptr);
}

std::string quoted_name(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
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

std::optional<std::string> bytes_of_hex(const Field& hex) {
  return hex.is_null() ? std::nullopt : std::optional(bytes_of_hex(hex.text()));
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

std::string execute_literals(const std::string& name, std::span<const std::string> literals) {
  std::size_t size = name.size() + 10;
  for (const std::string& literal : literals) size += literal.size() + 1;
  std::string text;
  text.reserve(size);
  text += "EXECUTE ";
  text += name;
  for (std::size_t i = 0; i < literals.size(); ++i) {
    text += i == 0 ? '(' : ',';
    text += literals[i];
  }
  if (!literals.empty()) text += ')';
  return text;
}

std::string storable(std::string_view text) {
  std::string cut(text.substr(0, kMaxErrorText));
  std::erase(cut, '\0');
  // nlohmann replaces what is not UTF-8 with U+FFFD.
  const std::string quoted =
      nlohmann::json(cut).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

}  // namespace hapax::store
