// Reads a JSON Schema before valijson does, and accepts only keywords that valijson checks.
//
// valijson ignores keywords that it does not know. The author of the schema would believe that they
// are checked, so hapax refuses them. It also refuses schemas by which a payload could stop a
// worker. These refer to themselves in place, or have keywords that valijson matches with a
// backtracking regular expression.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hapax::payload {

struct CheckedSchema {
  nlohmann::json schema;              // without keywords that check nothing: title, format, …
  std::vector<std::string> patterns;  // of "pattern"
  bool compares_elements = false;     // it has uniqueItems
};

// Throws: std::runtime_error: what is refused, with its JSON pointer, and how to fix it.
// Thread safety: pure.
CheckedSchema check_keywords(nlohmann::json schema);

// Changes numbers so that valijson can compare them. It would wrap around at 2^63, so greater
// integers become 2^63 - 1, and those below -2^63 become that. It does not take 1.0 and 1e21 for
// integers, as JSON Schema does.
// Precondition: nests at most kMaxJsonDepth levels. Thread safety: pure.
void make_comparable(nlohmann::json& value);

}  // namespace hapax::payload
