// sql/erase.psql, run by the owner of the schema.
#pragma once

#include <fstream>
#include <iterator>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/database.hpp"

namespace hapax::test {

// Erases. `text` has 3 bytes at least; `letters` and `keys` are arrays as PostgreSQL writes them.
// `more`: variables of the script, such as "tenant=ann". Returns what psql printed. Throws:
// std::runtime_error if it fails. Blocks: at most 60 s.
inline std::string erase(const Database& database, const std::string& text,
                         const std::string& letters = "{}", const std::string& keys = "{}",
                         const std::vector<std::string>& more = {}) {
  const sandbox::TemporaryFolder folder("erase");
  sandbox::Program psql{
      .argv = {"psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-v", "text=" + text, "-v",
               "erase=yes", "-v", "letters=" + letters, "-v", "keys=" + keys, "-f",
               source_folder() / "sql/erase.psql", database.owner().url},
      .output = folder.path() / "log"};
  for (const std::string& variable : more) {
    psql.argv.emplace_back("-v");
    psql.argv.push_back(variable);
  }
  sandbox::run_to_end(psql, std::chrono::seconds(60));
  std::ifstream printed(psql.output);
  return {std::istreambuf_iterator<char>(printed), {}};
}

}  // namespace hapax::test
