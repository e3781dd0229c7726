// SQL text: values as literals, and EXECUTE of prepared statements with them.
//
// Pure. Statements travel as text, several in one round trip; libpqxx 6 and 7 agree on text only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"

namespace hapax::store {

// "EXECUTE name(…)". Throws: DatabaseError (22021) where a value holds a NUL byte.
std::string execute_text(const std::string& name, const std::vector<Parameter>& values);

// One more element of the open array literal "{…".
void append_array_element(std::string& array, const Parameter& value);

// The bytes that encode(…, 'hex') spells.
std::string bytes_of_hex(std::string_view hex);

}  // namespace hapax::store
