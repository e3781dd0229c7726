#include "cli/command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "config/load.hpp"
#include "config/redact.hpp"
#include "observe/escape.hpp"
#include "plugin/load.hpp"
#include "store/conninfo.hpp"
#include "store/fault.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {

void add_config(CLI::App& command, ConfigOption& option) {
  command.add_option("-c,--config", option.path, "The configuration file")
      ->required()
      ->envname("HAPAX_CONFIG");
}

namespace {

// The mistakes of the handlers of those routes that could be read.
std::string handler_mistakes(const std::vector<config::Route>& routes, const ConfigOption& option,
                             const std::vector<HandlerFactory>& linked) {
  config::Config named;
  for (const config::Route& route : routes)
    if (!route.handler.empty()) named.routes.push_back(route);
  try {
    routes_of(named, option, linked);
  } catch (const Stop& stop) {
    return stop.what();
  }
  return {};
}

[[noreturn]] void refuse(const ConfigOption& option, const std::string& mistakes) {
  throw Stop(kConfigWrong, "the configuration " + option.path + " is wrong:\n" + mistakes);
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "warning: %s\n", observe::escape_for_terminal(warning).c_str());
}

void expect_conninfo(const ConfigOption& option, const config::Postgres& postgres) {
  try {
    store::conninfo_of(postgres.url, {});
  } catch (const store::DatabaseError& error) {
    refuse(option, error.what());
  }
}

}  // namespace

config::Config load(const ConfigOption& option, std::vector<std::string>* warnings,
                    const std::vector<HandlerFactory>* linked) {
  if (config::is_gate_file(option.path))
    throw Stop(kConfigWrong, option.path +
                                 " is the configuration of a gate; this command needs that "
                                 "of a worker, such as -c worker.json. For a gate there are "
                                 "`hapax keys`, `explain --key`, `outbox` and `check`");
  config::Loaded loaded = config::load_file(option.path, config::process_environment());
  if (warnings != nullptr) *warnings = std::exchange(loaded.warnings, {});
  print_warnings(loaded.warnings);
  if (!loaded.config)
    refuse(option, config::format(loaded.problems) +
                       (linked ? handler_mistakes(loaded.routes, option, *linked) : ""));
  expect_conninfo(option, loaded.config->postgres);
  return std::move(*loaded.config);
}

config::GateConfig load_gate(const ConfigOption& option, std::vector<std::string>& warnings) {
  config::LoadedGate loaded = config::load_gate_file(option.path, config::process_environment());
  warnings = std::move(loaded.warnings);
  if (!loaded.config) refuse(option, config::format(loaded.problems));
  expect_conninfo(option, loaded.config->base.postgres);
  return *std::move(loaded.config);
}

config::Config load_worker_or_gate(const ConfigOption& option) {
  if (!config::is_gate_file(option.path)) return load(option);
  std::vector<std::string> warnings;
  config::GateConfig config = load_gate(option, warnings);
  print_warnings(warnings);
  return std::move(config.base);
}

namespace {

// The handler of this name, or null. Throws: Stop if there are two.
const HandlerFactory* named(const std::vector<HandlerFactory>& factories, const std::string& name) {
  const HandlerFactory* found = nullptr;
  for (const HandlerFactory& factory : factories) {
    if (factory.name != name) continue;
    if (found != nullptr)
      throw Stop(kConfigWrong, "there are two handlers \"" + name + "\", of versions " +
                                   found->version + " and " + factory.version +
                                   "; name the plugin of the one you mean in the route");
    found = &factory;
  }
  return found;
}

std::string names_of(const std::vector<HandlerFactory>& factories) {
  std::string names;
  for (const HandlerFactory& factory : factories)
    names += (names.empty() ? "" : ", ") + factory.name;
  return names.empty() ? "none" : names;
}

std::vector<HandlerFactory> load_plugin(const std::string& path) {
  try {
    return plugin::load_plugin(path);
  } catch (const std::exception& error) {
    throw Stop(kConfigWrong, error.what());
  }
}

HandlerFactory handler_of(const config::Route& route, const std::vector<HandlerFactory>& handlers) {
  if (const HandlerFactory* const handler = named(handlers, route.handler)) {
    if (const std::string why = flow::mismatch(route, *handler); !why.empty())
      throw Stop(kConfigWrong, why);
    return *handler;
  }
  throw Stop(kConfigWrong,
             "no handler \"" + route.handler + "\"" +
                 (route.plugin.empty() ? "" : " in " + route.plugin) +
                 "; there is: " + names_of(handlers) +
                 (route.plugin.empty() ? ". Name its plugin in the route or with --plugin."
                                       : ". Write one of these names into the route."));
}

}  // namespace

std::vector<flow::Route> routes_of(const config::Config& config, const ConfigOption& option,
                                   const std::vector<HandlerFactory>& linked) {
  std::vector<HandlerFactory> shared = linked;
  for (const std::string& path : option.plugins)
    for (HandlerFactory& factory : load_plugin(path)) shared.push_back(std::move(factory));
  std::vector<flow::Route> routes;
  std::string missing;  // a line each
  for (const config::Route& route : config.routes) {
    try {
      routes.push_back(flow::make_route(
          route, handler_of(route, route.plugin.empty() ? shared : load_plugin(route.plugin))));
    } catch (const std::runtime_error& stop) {  // a Stop, or an error of its payload.schema
      missing += (missing.empty() ? "route of topic \"" : "\nroute of topic \"") + route.topic +
                 "\": " + stop.what();
    }
  }
  if (!missing.empty()) throw Stop(kConfigWrong, missing);
  return routes;
}

store::Session connect(const config::Config& config) {
  try {
    return store::Session(worker::connect_options(config));
  } catch (const store::DatabaseError& error) {
    throw Stop(kUnreachable, "cannot connect to PostgreSQL at " +
                                 config::redact_url(config.postgres.url) + ": " + error.what());
  }
}

}  // namespace hapax::app
