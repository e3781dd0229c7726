#include "store/operator/roles.hpp"

#include <string_view>

#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

}  // namespace

std::string roles_file() { return HAPAX_ROLES_FILE; }
std::string operator_file() { return HAPAX_OPERATOR_FILE; }

void grant_worker(Session& session, const std::string& role) {
  constexpr std::string_view kVariable = ":\"worker\"";  // as psql writes it
  const std::string name = quoted(role);
  std::string text(sql::kRoles);
  for (std::size_t at = 0; (at = text.find(kVariable, at)) != std::string::npos; at += name.size())
    text.replace(at, kVariable.size(), name);
  Transaction transaction(session);
  transaction.roll_back_and_run(text);  // it begins and commits by itself
}

}  // namespace hapax::store
