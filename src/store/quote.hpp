// SQL text: values as literals, and EXECUTE of prepared statements with them.
//
// Pure. Statements travel as text, several in one round trip; libpqxx 6 and 7 agree on text only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"

namespace hapax::store {

// Throws: DatabaseError (22021) where there is a NUL byte.
void refuse_nul(std::string_view text);

// "EXECUTE name(…)". Throws: DatabaseError (22021) where a value holds a NUL byte.
std::string execute_text(const std::string& name, const std::vector<Parameter>& values);

// One more element of the open array literal "{…".
void append_array_element(std::string& array, const Parameter& value);

// The same for "E'{…", an array literal as an SQL literal: both quotings in one pass.
// Precondition: no NUL byte in the value.
void append_literal_element(std::string& literal, const Parameter& value);

// "name" of an identifier, whatever is in it.
std::string quoted_name(std::string_view name);

// The bytes that encode(…, 'hex') spells.
std::string bytes_of_hex(std::string_view hex);

}  // namespace hapax::store
