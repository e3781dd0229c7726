// `hapax check`: PostgreSQL's side. Read only, but for the incarnation row that any worker makes.
#include <algorithm>

#include "app/findings.hpp"
#include "app/publishing.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "config/redact.hpp"
#include "config/units.hpp"
#include "inspect/outbox_state.hpp"
#include "store/message/claim_batch.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/migrate.hpp"
#include "store/operator/roles.hpp"
#include "store/transaction.hpp"
#include "store/transport.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {
namespace {

constexpr int kOldestServer = 140000;
constexpr const char* kMigrate = "run `hapax migrate up`";
const std::string kRoles = "run " + store::roles_file() + " with this role as `worker`";

void check_durability(const config::Config& config, const Json& server, const config::Gate* gate,
                      Findings& findings) {
  findings.judge(!server.at("standby").get<bool>(), "primary",
                 server.at("standby").get<bool>() ? "a standby" : "yes",
                 "name the primary in postgres.url");
  findings.judge(server.at("version_number") >= kOldestServer, "server version",
                 cell(server.at("version")), "upgrade to PostgreSQL 14 or newer");
  for (const char* const name : {"fsync", "full_page_writes"})
    findings.judge(
        server.at(name) == "on", name, cell(server.at(name)),
        std::string("set it on: a crash of the server loses effects and keys without it"));
  // Checkpoints are written synchronously in any case, so it may be off (guarantees I4).
  const std::string commit = cell(server.at("synchronous_commit"));
  const bool by_checkpoint = config.worker.durability == config::Durability::checkpoint;
  findings.ok("synchronous_commit",
              commit + (by_checkpoint ? ", off for effects (worker.durability)" : "") +
                  (commit != "off" && !by_checkpoint ? ""
                   : gate != nullptr                 ? "; a gate commits with it on"
                                                     : "; checkpoints are written with it on"));
  findings.judge(server.at("replication_role") == "origin", "session_replication_role",
                 cell(server.at("replication_role")),
                 "set it to origin for this role: hapax's triggers do not fire otherwise");
}

void check_role(const Json& server, Findings& findings) {
  const std::string role = cell(server.at("role"));
  const bool by_client = server.at("default_read_only_by") == "client";
  findings.judge(server.at("default_read_only") == "on", "role is read-only by default",
                 "default_transaction_read_only is " + cell(server.at("default_read_only")) +
                     " for " + role +
                     (by_client ? ", by the options of postgres.url or PGOPTIONS" : ""),
                 (by_client ? "take it out of these options, which stand above the role's setting: "
                            : "ALTER ROLE " + role + " SET default_transaction_read_only = on: ") +
                     std::string("what a handler writes after a ROLLBACK of its own then fails"));
  findings.judge(!server.at("acts_as_superuser").get<bool>(), "role is no superuser",
                 role + (server.at("acts_as_superuser").get<bool>() ? " is one" : ""),
                 "give the worker a role of its own, and run " + store::roles_file() +
                     ": a superuser can switch the seal off");
}

void check_isolation(const Json& server, Findings& findings) {
  const std::string level = cell(server.at("default_isolation"));
  if (level.starts_with("read ")) return;
  findings.warn("isolation",
                "default_transaction_isolation is " + level + " for " + cell(server.at("role")) +
                    ", and hapax runs handlers at read committed all the same",
                "see docs/guarantees.md#isolation: lock what a handler reads before it changes it");
}

void check_connections(const config::Config& config, const Json& server, const config::Gate* gate,
                       Findings& findings) {
  // Three of the keeper, the report, retention, replays. Of a gate: retention, outcomes. The relay
  // and its sweep. The thread that takes calls to the outside.
  const bool calls = std::ranges::any_of(
      config.routes, [](const config::Route& route) { return route.outside.has_value(); });
  const std::int64_t beside =
      (gate == nullptr ? 6 : 2) + (needs_relay(config) ? 2 : 0) + (calls ? 1 : 0);
  const std::string kind = gate == nullptr ? "worker" : "gate";
  const std::int64_t wanted = static_cast<std::int64_t>(config.worker.lanes) + beside;
  std::int64_t allowed = server.at("max_connections").get<std::int64_t>() -
                         server.at("reserved_connections").get<std::int64_t>();
  for (const char* const name : {"role_limit", "database_limit"})
    if (server.at(name) >= 0) allowed = std::min(allowed, server.at(name).get<std::int64_t>());
  findings.judge(
      wanted <= allowed, "connections",
      "a " + kind + " takes " + std::to_string(wanted) + " (lanes + " + std::to_string(beside) +
          "), this role may have " + std::to_string(allowed) + " for all processes together",
      "lower " + kind + ".lanes, or raise max_connections or the limit of the role or database");
}

void check_timeouts(const config::Config& config, const config::Gate* gate, Findings& findings) {
  const config::Postgres& postgres = config.postgres;
  const std::string found = "lock " + config::format_duration(postgres.lock_timeout) +
                            ", statement " + config::format_duration(postgres.statement_timeout) +
                            ", idle in transaction " +
                            config::format_duration(postgres.idle_in_transaction_timeout);
  const auto zero = std::chrono::milliseconds(0);
  if (postgres.lock_timeout == zero || postgres.idle_in_transaction_timeout == zero) {
    findings.warn("timeouts", found,
                  "0 waits for ever: a process that hangs holds its keys, and others wait");
  } else if (postgres.statement_timeout != zero &&
             postgres.statement_timeout <= postgres.lock_timeout) {
    findings.warn("timeouts", found,
                  "keep statement_timeout above lock_timeout, or a held key looks like a slow "
                  "statement");
  } else if (gate == nullptr && config.worker.handler_timeout <= postgres.statement_timeout) {
    findings.warn("timeouts",
                  found + ", handler " + config::format_duration(config.worker.handler_timeout),
                  "keep worker.handler_timeout above statement_timeout, or one slow statement ends "
                  "the worker");
  } else {
    findings.ok("timeouts", found);
  }
}

void fail_shared_sessions(Findings& findings) {
  findings.fail("pooler", "two connections share a server process, one transaction at a time",
                "hapax prepares statements: use the pooler's session mode, or connect directly");
}

void check_pooler(const config::Config& config, store::Session& session, const Json& server,
                  Findings& findings) {
  // A second connection takes what the first has just left, if a pooler shares sessions.
  const std::int64_t pid = store::read_backend_pid(session);
  store::Session neighbour = connect(config);
  store::Transaction holder(neighbour);
  if (holder.run("SELECT pg_backend_pid()")[0][0].as<std::int64_t>() == pid ||
      store::read_backend_pid(session) != pid) {
    return fail_shared_sessions(findings);
  }
  const auto dialled = store::dialled_port(config.postgres.url);
  if (!dialled || server.at("port").is_null() || server.at("port") != *dialled) {
    findings.ok("pooler", "cannot tell: the server itself listens on port " +
                              cell(server.at("port")) + ", the url dials " +
                              (dialled ? std::to_string(*dialled) : std::string("several")) +
                              " (a pooler in session mode, a proxy, or a forwarded port)");
  } else {
    findings.ok("pooler", "none seen");
  }
}

// What others on the network can read or forge. Behind a pooler the server sees the pooler's own.
void check_transport(const config::Config& config, const Json& server, Findings& findings) {
  const auto [local, sslmode] = store::transport_of(worker::connect_options(config).url);
  const std::string what = "PostgreSQL's transport";
  const std::string mode = sslmode.empty() ? "" : " (sslmode=" + sslmode + ")";
  const std::string found = server.at("tls").is_null() ? "plain text" : cell(server.at("tls"));
  if (local) {
    findings.ok(what, found + mode + ", on this machine");
  } else if (server.at("tls").is_null()) {
    findings.warn(what, found + mode + ": the network can read and change what is written",
                  "set ssl = on at the server and write sslmode=verify-full into postgres.url");
  } else if (sslmode == "verify-full") {
    findings.ok(what, found + mode);
  } else {
    findings.warn(what, found + mode + ", but the server has not proved that it is the right one",
                  "write sslmode=verify-full and sslrootcert=… into postgres.url: without them "
                  "anybody between can act as the server" +
                      std::string(sslmode == "prefer" || sslmode == "allow"
                                      ? ", or have us fall back to plain text"
                                      : ""));
  }
}

void check_tables(store::Session& session, Findings& findings) {
  std::string wrong, owned;
  for (const Json& table : store::read_tables(session)) {
    const std::string name = cell(table.at("name"));
    if (table.at("persistence") != (name == "incarnation" ? "u" : "p"))
      wrong += (wrong.empty() ? "" : ", ") + name;
    if (table.at("owned").get<bool>()) owned = name;
  }
  findings.judge(wrong.empty(), "tables are logged",
                 wrong.empty() ? "all but incarnation" : "wrong: " + wrong,
                 "ALTER TABLE hapax.… SET LOGGED (incarnation: SET UNLOGGED): unlogged tables are "
                 "emptied by a crash, and incarnation must be");
  if (owned.empty()) {
    findings.ok("role owns no table", "right");
  } else {
    findings.warn("role owns no table", "it owns hapax." + owned,
                  "migrate with another role: an owner can switch the seal off");
  }
}

// A gate finds it out by itself.
void check_deferred(const config::Config& config, store::Session& session, const config::Gate* gate,
                    Findings& findings) {
  const bool shares = std::ranges::any_of(
      config.routes, [](const config::Route& route) { return route.batch > 1; });
  if (!shares || !store::has_deferred(session)) return;
  const std::string why = "a table has an initially deferred constraint or trigger";
  if (gate != nullptr)
    return findings.ok("batches", "no requests share a transaction, because " + why);
  findings.warn("batches", why + ", which judges all messages of a batch together",
                "set routes[].batch to 1 if the handler writes that table");
}

void check_rights(store::Session& session, Findings& findings) {
  std::string missing;
  for (const Json& right : store::read_missing_rights(session))
    missing += (missing.empty() ? "" : ", ") + cell(right.at("privilege")) + " on hapax." +
               cell(right.at("table"));
  findings.judge(missing.empty(), "rights", missing.empty() ? "all" : "missing: " + missing,
                 kRoles);
}

void check_store(store::Session& session, Findings& findings) {
  const store::StoreIdentity identity = store::read_store(session);
  findings.judge(!identity.copied, "database is the original",
                 "store " + identity.id + ", " + identity.facts,
                 "every partition halts, and nothing is published. Type `hapax resume` with "
                 "`--decision moved` if it is the original, else with `copy`");
}

void check_scopes(const config::Config& config, store::Session& session, Findings& findings) {
  std::vector<std::string> topics;
  for (const config::Route& route : config.routes) topics.push_back(route.topic);
  bool shared = false;
  for (const Json& other : store::read_other_groups(session, group_of(config), topics))
    for (const config::Route& route : config.routes) {
      if (other.at("topic") != route.topic || other.at("scope") != route.key.scope) continue;
      shared = true;
      findings.warn("scope " + route.key.scope,
                    "group " + cell(other.at("group_id")) + " uses it on topic " + route.topic +
                        " too: what one group has done is a duplicate to the other",
                    "right if the group was renamed; else give this route a scope of its own");
    }
  if (!shared) findings.ok("scopes", "no other group shares one on these topics");
}

// True: there are none.
bool check_outbox_halts(const config::Config& config, store::Session& session, Findings& findings) {
  const Json outbox = store::has_outbox(session)
                          ? outbox_state(session, group_of(config)).at("halts")
                          : Json::array();
  for (const Json& halt : outbox)
    findings.warn(
        "halt",
        halted_thing(halt) + " since " + cell(halt.at("since")) + ": " + cell(halt.at("reason")),
        "see `hapax outbox list`, which names the commands that end it");
  return outbox.empty();
}

void check_halts(const config::Config& config, store::Session& session, Findings& findings) {
  const std::vector<store::Halt> halts = store::read_halts(session, group_of(config));
  for (const store::Halt& halt : halts)
    findings.warn("halt",
                  halt.topic + (halt.whole_route ? "" : "/" + std::to_string(halt.partition)) +
                      " since " + halt.since + ": " + halt.reason,
                  "see `hapax status`; `hapax resume` with one of: " +
                      store::decisions_for(halt.reason, halt.offset.has_value()));
  if (check_outbox_halts(config, session, findings) && halts.empty())
    findings.ok("halts", "none open");
}

// The configuration refuses its own topics; another worker of the group may consume it.
void check_loops(const config::Config& config, store::Session& session, Findings& findings) {
  for (const config::Route& route : config.routes) {
    const std::string& topic = route.dead_letter_topic;
    if (topic.empty() || !store::read_checkpoint(session, group_of(config), {topic, 0})) continue;
    findings.fail("dead letter topic " + topic,
                  "group " + group_of(config) + " has consumed it: dead letters would come back",
                  "name a topic in routes[].dead_letter_topic that this group does not consume");
  }
}

void check_schema(const config::Config& config, store::Session& session, const config::Gate* gate,
                  Findings& findings) {
  // What a process of this configuration asks for at its start.
  const int oldest = std::max(oldest_schema(config),
                              needs_relay(config) ? store::kOutboxSchema : store::kOldestSchema);
  if (const auto problem = store::schema_problem(session, oldest)) {
    const auto colon = problem->rfind(": ");  // behind it stands what to do
    findings.fail("schema", problem->substr(0, colon), problem->substr(colon + 2));
    return;
  }
  if (store::schema_problem(session, store::kSchema))
    findings.warn("schema",
                  "an older version, on which a process runs. Commands such as `hapax status` "
                  "refuse it",
                  kMigrate);
  else
    findings.ok("schema", "version that this binary knows");
  findings.attempt("tables are logged", kMigrate, [&] { check_tables(session, findings); });
  check_handlers_tables(config, session, findings);
  findings.attempt("batches", kRoles, [&] { check_deferred(config, session, gate, findings); });
  findings.attempt("triggers", kMigrate, [&] { check_triggers(session, findings); });
  findings.attempt("rights", kRoles, [&] { check_rights(session, findings); });
  if (gate == nullptr || needs_relay(config))
    findings.attempt("database is the original", kRoles, [&] { check_store(session, findings); });
  if (gate != nullptr) {
    if (needs_relay(config))
      findings.attempt("halts", kRoles, [&] {
        if (check_outbox_halts(config, session, findings)) findings.ok("halts", "none open");
      });
    return;
  }
  findings.attempt("scopes", kRoles, [&] { check_scopes(config, session, findings); });
  findings.attempt("dead letter topics", kRoles, [&] { check_loops(config, session, findings); });
  findings.attempt("halts", kRoles, [&] { check_halts(config, session, findings); });
  findings.attempt("open calls", kRoles, [&] { check_calls(config, session, findings); });
}

void check_server(const config::Config& config, const config::Gate* gate, Findings& findings) {
  const std::string url = config::redact_url(config.postgres.url);
  findings.attempt("PostgreSQL", "see postgres.url, and the server", [&] {
    store::Session session = connect(config);
    Json server;
    try {
      server = store::read_server(session);
    } catch (const store::DatabaseError& error) {
      if (!store::is_of_a_shared_session(error.sqlstate())) throw;
      return fail_shared_sessions(findings);
    }
    findings.ok("PostgreSQL", "database " + cell(server.at("database")) + " as " +
                                  cell(server.at("role")) + " at " + url);
    check_transport(config, server, findings);
    check_durability(config, server, gate, findings);
    check_role(server, findings);
    check_isolation(server, findings);
    check_connections(config, server, gate, findings);
    check_pooler(config, session, server, findings);
    findings.attempt("schema", kRoles, [&] { check_schema(config, session, gate, findings); });
  });
}

}  // namespace

void check_postgres(const config::Config& config, Findings& findings, const config::Gate* gate) {
  check_timeouts(config, gate, findings);
  check_server(config, gate, findings);
}

}  // namespace hapax::app
