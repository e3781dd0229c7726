// What hapax makes of a handler's SQL text, once for each distinct one.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::store {

// What a statement may leave behind in its session, in order of how much it takes to undo it.
enum class Leaves { nothing, settings, prepared_statements };

struct UserText {
  // By the text alone. Only a plain query leaves nothing.
  Leaves leaves = Leaves::nothing;
  // What may be a function that a plain query calls: each name in front of a parenthesis, as
  // PostgreSQL keeps names. Keywords are among them, and tables with a list of columns. Emptied
  // once PostgreSQL was asked.
  std::vector<std::string> calls;
  // Whether it may end the transaction that it runs in, or make or use savepoints.
  bool controls_transaction = false;
};

// A statement of a handler's, prepared on one session.
struct UserStatement {
  std::string name;
  // `INSERT INTO t (…)` of a statement that is that and VALUES ($1, …), without more: it also has a
  // form over arrays, which takes many rows at once. Empty for everything else.
  std::string insert;
  std::vector<std::string> types;  // of its parameters, once that form is prepared
  UserText text = {};
};

// A text that is not recognised counts as leaving something and as ending the transaction.
UserText read_user_text(std::string_view text);

// "INSERT INTO t (a, b)" of `INSERT INTO t (a, b) VALUES ($1, $2)`, where nothing else is in it:
// anything behind (ON CONFLICT, RETURNING) or between makes rows depend on each other.
std::optional<std::string> plain_insert(std::string_view text);

}  // namespace hapax::store
