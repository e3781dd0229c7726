// `hapax check`: the tables that handlers write.
#include "app/findings.hpp"
#include "cli/output.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

// hapax does not know which tables its handlers write, but it knows which they may write.
void check_unlogged_tables(store::Session& session, Findings& findings) {
  std::string unlogged;
  for (const Json& table : store::read_unlogged_tables(session))
    unlogged += (unlogged.empty() ? "" : ", ") + cell(table.at("name"));
  if (unlogged.empty())
    return findings.ok("handlers' tables", "this role may write no unlogged one");
  findings.warn(
      "handlers' tables", "unlogged, and this role may write them: " + unlogged,
      "ALTER TABLE … SET LOGGED if a handler writes it: a crash of PostgreSQL empties it, "
      "and the keys of its messages stay, so the effects are lost");
}

// A function of another role whose types fit better than those of PostgreSQL's own runs with the
// rights of the role that names it.
void check_open_schemas(store::Session& session, Findings& findings) {
  for (const Json& schema : store::read_open_schemas(session)) {
    const std::string name = cell(schema.at("name"));
    findings.warn("schema " + name,
                  "any role may create functions in it, and handlers' statements search it",
                  "REVOKE CREATE ON SCHEMA " + name + " FROM PUBLIC");
  }
}

// What a message would meet as 42P01 or 42501.
void check_declared_tables(const config::Config& config, store::Session& session,
                           Findings& findings) {
  Json declared = Json::array();
  for (const config::Route& route : config.routes)
    for (const auto& [table, rights] : route.tables)
      for (const std::string& right : rights)
        declared.push_back({{"table", table}, {"privilege", right}});
  if (declared.empty()) return;
  const Json missing = store::read_missing_table_rights(session, declared);
  for (const Json& one : missing) {
    const std::string table = cell(one.at("table"));
    if (one.at("privilege").is_null()) {
      findings.fail("table " + table, "there is none of this name in the search_path",
                    "create it, or correct routes[].tables");
    } else {
      const std::string right = cell(one.at("privilege"));
      findings.fail("table " + table, "this role has no " + right + " on it",
                    "GRANT " + right + " ON " + table + " to the role of postgres.url");
    }
  }
  if (missing.empty()) findings.ok("routes[].tables", "all there, with the rights that they need");
}

}  // namespace

void check_handlers_tables(const config::Config& config, store::Session& session,
                           Findings& findings) {
  const std::string fix = "correct routes[].tables";
  findings.attempt("schemas", fix, [&] { check_open_schemas(session, findings); });
  findings.attempt("handlers' tables", fix, [&] { check_unlogged_tables(session, findings); });
  findings.attempt("routes[].tables", fix,
                   [&] { check_declared_tables(config, session, findings); });
}

}  // namespace hapax::app
