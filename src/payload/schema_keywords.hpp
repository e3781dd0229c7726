// Reads a JSON Schema before valijson does, and lets through what valijson checks.
//
// valijson passes over keywords that it does not know. The author of the schema would believe that
// they are checked, so they are refused. Refused is also what a payload could use to stop a worker:
// a schema that refers to itself in place, and keywords that valijson matches with a backtracking
// regular expression.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hapax::payload {

struct CheckedSchema {
  nlohmann::json schema;              // without what checks nothing: title, format, …
  std::vector<std::string> patterns;  // of "pattern"
  bool compares_elements = false;     // it has uniqueItems
};

// Throws: std::runtime_error: what is refused, with its JSON pointer, and how to fix it.
// Thread safety: pure.
CheckedSchema check_keywords(nlohmann::json schema);

// Numbers as valijson can compare them. It would wrap around at 2^63, so greater integers become
// 2^63 - 1. And 1.0 is an integer to JSON Schema, but not to valijson.
// Precondition: nests at most kMaxJsonDepth levels. Thread safety: pure.
void make_comparable(nlohmann::json& value);

}  // namespace hapax::payload
