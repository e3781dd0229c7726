// What hapax makes of a handler's SQL text, once for each distinct one.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::store {

// A statement of a handler's, prepared on one session.
struct UserStatement {
  std::string name;
  // `INSERT INTO t (…)` of a statement that is that and VALUES ($1, …), without more: it also has a
  // form over arrays, which takes many rows at once. Empty for everything else.
  std::string insert;
  std::vector<std::string> types;  // of its parameters, once that form is prepared
};

// What a statement may leave behind in its session, in order of how much it takes to undo it.
enum class Leaves { nothing, settings, prepared_statements };

// By the text alone: plain queries leave nothing, unless they call the functions that do. Whatever
// is not recognised as plain counts as leaving something.
Leaves leaves(std::string_view text);

// "INSERT INTO t (a, b)" of `INSERT INTO t (a, b) VALUES ($1, $2)`, where nothing else is in it:
// anything behind (ON CONFLICT, RETURNING) or between makes rows depend on each other.
std::optional<std::string> plain_insert(std::string_view text);

}  // namespace hapax::store
