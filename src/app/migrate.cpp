// hapax migrate up|down|status|print: the schema.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "cli/command.hpp"
#include "store/fault.hpp"
#include "store/operator/migrate.hpp"

namespace hapax::app {
namespace {

// Handlers hold hapax's tables while they run, and other messages wait behind a migration that
// waits for them. So it waits no longer than lock_timeout, lets them go on for a while, and tries
// again.
constexpr int kMostTries = 10;
constexpr std::chrono::seconds kGivesWay{3};

struct MigrateOptions {
  ConfigOption config;
  std::string url;
  int target = 0;
  bool yes = false;
  bool json = false;
};

// The owner's connection: --url, or the worker's own if that is enough.
store::Session connect_owner(const MigrateOptions& options) {
  if (options.url.empty() && options.config.path.empty())
    throw Stop(kUsage, "migrate needs --url (the schema's owner) or -c worker.json");
  if (options.url.empty()) return connect(load_worker_or_gate(options.config));
  store::ConnectOptions connection;
  connection.url = options.url;
  connection.application_name = "hapax migrate";
  connection.statement_timeout = std::chrono::milliseconds(0);  // a migration takes what it takes
  try {
    return store::Session(connection);
  } catch (const store::DatabaseError& error) {
    throw Stop(kUnreachable, std::string("cannot connect to PostgreSQL: ") + error.what());
  }
}

void print_done(const char* what, const std::vector<int>& numbers) {
  if (numbers.empty()) std::printf("nothing to do\n");
  for (const int number : numbers) std::printf("%s %d\n", what, number);
}

ExitCode migrate(const std::function<void()>& action) {
  try {
    action();
    return kDone;
  } catch (const store::DatabaseError& error) {
    if (error.fault().kind != store::Fault::Kind::sql) throw;
    throw Stop(kFailed,
               "PostgreSQL: " + std::string(error.what()) +
                   "The migration that was under way is taken back, those before it stand "
                   "(`hapax migrate status`). If another session holds a table, such as a pg_dump, "
                   "run it again after them; it needs the schema's owner in --url");
  }
}

// Each migration takes the lock again.
store::Waits told_once() {
  return [told = std::string()](const std::string& holder) mutable {
    if (std::exchange(told, holder) == holder) return;
    std::fprintf(stderr,
                 "another session has the lock of the migrations: %s\n"
                 "hapax waits for it. If it is no other `hapax migrate`, end it with "
                 "pg_terminate_backend()\n",
                 holder.c_str());
  };
}

ExitCode up(const MigrateOptions& options) {
  store::Session session = connect_owner(options);
  int tries = 0;
  const auto tries_again = [&] {
    if (++tries == kMostTries) return false;
    std::fprintf(stderr,
                 "another session holds a table that a migration needs; hapax tries again in "
                 "%d s (%d of %d)\n",
                 static_cast<int>(kGivesWay.count()), tries, kMostTries);
    std::this_thread::sleep_for(kGivesWay);
    return true;
  };
  return migrate(
      [&] { print_done("applied", store::migrate_up(session, tries_again, told_once())); });
}

ExitCode down(const MigrateOptions& options) {
  if (!options.yes)
    throw Stop(kUsage,
               "migrate down deletes every key, checkpoint and dead letter of the "
               "migrations above " +
                   std::to_string(options.target) + "; give --yes to do it");
  store::Session session = connect_owner(options);
  return migrate(
      [&] { print_done("took back", store::migrate_down(session, options.target, told_once())); });
}

const char* state_of(const store::MigrationState& state) {
  if (state.unknown) return "applied by a newer hapax";
  if (state.changed) return "applied with another text";
  return state.applied_at ? "applied" : "pending";
}

ExitCode status(const MigrateOptions& options) {
  store::Session session = connect_owner(options);
  const auto states = store::migration_states(session);
  bool good = true;
  nlohmann::json list = nlohmann::json::array();
  for (const store::MigrationState& state : states) {
    good = good && state.applied_at && !state.changed;
    list.push_back({{"number", state.number},
                    {"name", state.name},
                    {"state", state_of(state)},
                    {"applied_at", state.applied_at ? nlohmann::json(*state.applied_at)
                                                    : nlohmann::json(nullptr)}});
    if (!options.json)
      std::printf("%4d  %-28s %-26s %s\n", state.number, state.name.c_str(), state_of(state),
                  state.applied_at.value_or("").c_str());
  }
  if (options.json) std::printf("%s\n", list.dump(2).c_str());
  return good ? kDone : kFailed;
}

ExitCode print(const MigrateOptions&) {
  std::fputs(store::migration_text().c_str(), stdout);
  return kDone;
}

}  // namespace

void add_migrate(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand("migrate", "Create and change hapax's schema");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  hapax migrate up --url postgresql://owner@db/payments\n"
      "  hapax migrate status -c worker.json     exit code 1 if something is pending\n"
      "  hapax migrate print | psql -v ON_ERROR_STOP=1 …   by hand; each migration a transaction, "
      "so\n"
      "                                          on an older schema run those that are missing");
  const auto options = std::make_shared<MigrateOptions>();
  const auto add = [&](const char* name, const char* what,
                       ExitCode (*action)(const MigrateOptions&)) {
    auto* const sub = command->add_subcommand(name, what);
    if (action != print) {
      sub->add_option("--url", options->url, "libpq URI of the schema's owner");
      sub->add_option("-c,--config", options->config.path,
                      "Take postgres.url of this configuration");
    }
    sub->callback([&line, options, action] {
      line.command = [options, action] { return action(*options); };
    });
    return sub;
  };
  add("up", "Apply what is missing; a second run waits, then finds nothing to do", up);
  auto* const down_command = add("down", "Take migrations back, with all data in them", down);
  down_command->add_option("--to", options->target, "The newest migration to keep")->required();
  down_command->add_flag("--yes", options->yes, "Do it");
  add("status", "Show what is applied; exit code 1 if something is pending or changed", status)
      ->add_flag("--json", options->json, "For programs");
  add("print", "Print the SQL", print);
}

}  // namespace hapax::app
