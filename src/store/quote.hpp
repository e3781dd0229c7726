// SQL text: values as literals, and EXECUTE of prepared statements with them.
//
// Pure. Statements travel as text, several in one round trip; libpqxx 6 and 7 agree on text only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/rows.hpp"

namespace hapax::store {

// "EXECUTE name(…)".
std::string execute_text(const std::string& name, const std::vector<Parameter>& values);

// One more element of the open array literal "{…".
void append_array_element(std::string& array, const Parameter& value);

// An array as an SQL literal, E'{…}': both quotings in one pass, for what is long or often sent.
class ArrayLiteral {
 public:
  // Precondition of all: no NUL byte in the value.
  void add(std::string_view text);
  void add(std::int64_t number);
  void add_bytes(std::string_view bytes);  // for a bytea[]
  void add_null();

  std::size_t size() const { return text_.size(); }
  void reserve(std::size_t bytes) { text_.reserve(bytes); }

  // Nothing may be added afterwards.
  std::string text() &&;

 private:
  void begin_element() { text_ += text_.size() > 3 ? "," : ""; }

  std::string text_ = "E'{";
};

// A value as an SQL literal. Throws: DatabaseError (22021) if there is a NUL byte.
std::string text_literal(std::string_view value);

// The whole seconds, or NULL.
Parameter seconds_or_null(const std::optional<std::chrono::seconds>& seconds);

// "EXECUTE name(…)" of SQL literals.
std::string execute_literals(const std::string& name, std::span<const std::string> literals);

// "name" of an identifier with any content.
std::string quoted_name(std::string_view name);

// UTF-8 that PostgreSQL text can hold: NUL left out, invalid bytes replaced, cut at kMaxErrorText.
// For words of others: errors, reasons, what they quote.
std::string storable(std::string_view text);
inline constexpr std::size_t kMaxErrorText = 8192;  // bytes

// The bytes that encode(…, 'hex') spells.
std::string bytes_of_hex(std::string_view hex);
std::optional<std::string> bytes_of_hex(const Field& hex);  // NULL gives nothing

// One value of each item; `add` adds it to the literal. Takes the first for as long as the others.
template <class Items, class Add>
std::string array_literal(const Items& items, Add add) {
  ArrayLiteral literal;
  bool is_first = true;
  for (const auto& item : items) {
    add(literal, item);
    if (std::exchange(is_first, false)) literal.reserve((std::size(items) + 1) * literal.size());
  }
  return std::move(literal).text();
}

}  // namespace hapax::store
