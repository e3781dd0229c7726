// What hapax learns of a handler's SQL text, once for each distinct text.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::store {

// What a statement may leave behind in its session. The later ones are harder to undo.
enum class Leaves { nothing, settings, prepared_statements };

struct UserText {
  // Decided by the text alone. Only a plain query leaves nothing.
  Leaves leaves = Leaves::nothing;
  // The names that may be functions which a plain query calls: each name before a parenthesis or
  // behind a point, in PostgreSQL's spelling. Keywords are among them, and tables with a list of
  // columns. Emptied once hapax has asked PostgreSQL about them.
  std::vector<std::string> calls;
  // Whether it may end the transaction that it runs in, or make or use savepoints.
  bool controls_transaction = false;
};

// A statement of a handler's, prepared on one session.
struct UserStatement {
  std::string name;
  // `INSERT INTO t (…)`, if the statement is only that and VALUES ($1, …). Then it also has a form
  // over arrays, which takes many rows at once. Empty for all other statements.
  std::string insert;
  std::vector<std::string> types;  // of its parameters, once that form is prepared
  UserText text = {};
};

// If hapax does not recognise a text, it counts as one that leaves something behind and may end the
// transaction.
UserText read_user_text(std::string_view text);

// Returns "INSERT INTO t (a, b)" of `INSERT INTO t (a, b) VALUES ($1, $2)`. Nothing if the
// statement holds anything else (ON CONFLICT, RETURNING), because then rows may depend on each
// other.
std::optional<std::string> plain_insert(std::string_view text);

}  // namespace hapax::store
