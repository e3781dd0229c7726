// hapax check: the doctor.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "app/findings.hpp"
#include "app/gate_setup.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "config/expand.hpp"
#include "gate/open_files.hpp"
#include "hapax/outside.hpp"
#include "observe/log.hpp"
#include "payload/reader.hpp"

namespace hapax::app {
namespace {

struct CheckOptions {
  ConfigOption config;
  bool json = false;
};

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::warn: return "warn";
    case Severity::fail: break;
  }
  return "FAIL";
}

// Calls on_start, because a worker does not start if that throws.
void try_on_start(const HandlerFactory& handler, const config::Route& route, Findings& findings) {
  findings.attempt("on_start of " + handler.name, "fix that, or routes[].options", [&] {
    std::string why = "it threw what is no std::exception";
    try {
      const Setup setup{route.topic, route.options.dump()};
      return handler.make_outside ? handler.make_outside()->on_start(setup)
                                  : handler.make()->on_start(setup);
    } catch (const std::exception& error) {
      why = error.what();
      std::ranges::replace(why, '\n', ' ');
    } catch (...) {
    }
    throw Stop(kConfigWrong, why);
  });
}

// The schema of a route's payloads, and the registry that it asks.
void check_payload(const config::Route& route, Findings& findings) {
  const config::Payload& payload = route.payload;
  if (!payload.schema.empty())
    findings.attempt("payload schema " + payload.schema, "fix the schema, or payload.schema", [&] {
      payload::read_json_schema(payload.schema);
      findings.ok("payload schema " + payload.schema, "for topic " + route.topic);
    });
  const std::string& url = payload.registry.url;
  if (url.empty()) return;
  findings.attempt("schema registry " + url, "fix payload.registry, or start the registry", [&] {
    const payload::HttpAnswer answer = payload::http_get(payload.registry)("/schemas/types");
    if (answer.status != 200)
      throw std::runtime_error("it answers HTTP " + std::to_string(answer.status));
    findings.ok("schema registry " + url, "answers, for topic " + route.topic);
  });
}

// Checks the handler of each route alone, so one missing plugin does not hide the next. `unit`:
// what a route's `topic` names, for the text: a topic or a path.
void check_handlers(const config::Config& config, const char* unit, const ConfigOption& option,
                    const std::vector<HandlerFactory>& linked, Findings& findings) {
  for (const config::Route& route : config.routes) {
    check_payload(route, findings);
    const std::string what = "handler " + route.handler;
    findings.attempt(
        what, "build the plugin for this hapax, or correct the route's handler and plugin", [&] {
          config::Config one = config;
          one.routes = {route};
          one.routes[0].payload = {};
          const HandlerFactory handler = routes_of(one, option, linked).at(0).handler;
          findings.ok(what, "version " + handler.version + ", for " + unit + " " + route.topic);
          try_on_start(handler, route, findings);
        });
  }
}

// A larger batch is not the default, because a handler may notice that it shares its transaction.
void advise_batch(const config::Route& route, Findings& findings) {
  if (route.batch > 1 || route.outside) return;
  const bool only_inserts = std::ranges::all_of(route.tables, [](const auto& table) {
    return std::ranges::all_of(table.second, [](const std::string& right) {
      return right == "INSERT" || right == "SELECT";
    });
  });
  if (!only_inserts) return;
  findings.ok("batch of topic " + route.topic,
              "1, a transaction for each message. " +
                  std::string(route.tables.empty() ? "If the handler only inserts, it"
                                                   : "It declares only INSERT and SELECT, so it") +
                  " is about ten times as fast with \"batch\": 100 (docs/performance.md)");
}

void find_defaults(const Json& value, std::set<std::string>& names) {
  if (value.is_string())
    for (const std::string& name :
         config::defaulted(value.get_ref<const std::string&>(), config::process_environment()))
      names.insert(name);
  if (value.is_structured())
    for (const Json& inner : value) find_defaults(inner, names);
}

// Values are not shown, because a default may hold a password.
void tell_defaults(const std::string& path, Findings& findings) {
  std::ifstream file(path);
  std::set<std::string> names;
  find_defaults(Json::parse(file, nullptr, false, true), names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  if (!names.empty())
    findings.ok("variables", "unset or empty, so the file's default counts: " + text);
}

void warn_of_secrets(const std::vector<std::string>& warnings, Findings& findings) {
  for (const std::string& warning : warnings) {
    const auto found = std::min(warning.size(), warning.find("; "));
    findings.warn("secrets", warning.substr(0, found),
                  warning.substr(std::min(warning.size(), found + 2)));
  }
}

// Warns of traffic that others on the network can read or forge.
void check_gate_transport(const config::Gate& gate, const gate::Tls* tls, Findings& findings) {
  const std::string what = "the gate's transport";
  const std::string& host = gate.listen.host;
  if (tls != nullptr) {
    const auto left = std::chrono::duration_cast<std::chrono::hours>(
        tls->expires() - std::chrono::system_clock::now());
    const std::string found =
        "TLS, with a certificate for " + std::to_string(left.count() / 24) + " days";
    if (left <= std::chrono::hours(0))
      findings.fail(what, "TLS, and its certificate has expired", "put a new one into gate.tls");
    else if (left < std::chrono::hours(14 * 24))
      findings.warn(what, found, "put a new one into the files of gate.tls");
    else
      findings.ok(what, found);
  } else if (host == "localhost" || host.starts_with("127.") || host == "::1") {
    findings.ok(what, "plain HTTP, on this machine");
  } else {
    findings.warn(what, "plain HTTP on " + host + ": the network can read and change requests",
                  "set gate.tls, or listen on an address that only a proxy with TLS can reach");
  }
}

// The service may have another limit than the shell of the check, so this is no failure.
void check_open_files(const config::Gate& gate, Findings& findings) {
  gate::raise_open_files();
  const std::size_t files = gate::open_files();
  const std::size_t fit = gate::connections_that_fit(gate, files);
  if (fit < gate.limits.connections)
    findings.warn("open files",
                  std::to_string(files) + " at most, as started here: with them the gate takes " +
                      std::to_string(fit) + " connections, not gate.limits.connections",
                  "raise the hard limit (ulimit -Hn, LimitNOFILE), or set fewer connections");
}

void check_gate(const ConfigOption& option, const std::vector<HandlerFactory>& linked,
                Findings& findings) {
  std::vector<std::string> warnings;
  const config::GateConfig config = load_gate(option, warnings);
  operations_of(config);
  const auto tls = tls_of(config);
  warn_of_secrets(warnings, findings);
  config::Config handled = config.base;
  std::erase_if(handled.routes, [](const config::Route& route) {
    return route.handler == config::kAcceptHandler || route.handler == config::kOperationsHandler;
  });
  const std::size_t accepting = static_cast<std::size_t>(std::ranges::count_if(
      config.gate.routes, [](const config::GateRoute& route) { return route.accept.has_value(); }));
  findings.ok("configuration", option.path + ": gate " + config.gate.name + ", " +
                                   std::to_string(handled.routes.size()) +
                                   " routes with a handler, " + std::to_string(accepting) +
                                   " that accept, " + std::to_string(config.gate.lanes) + " lanes");
  tell_defaults(option.path, findings);
  check_gate_transport(config.gate, tls.get(), findings);
  check_open_files(config.gate, findings);
  check_handlers(handled, "path", option, linked, findings);
  check_postgres(config.base, findings, &config.gate);
  if (!config.base.publish.topics.empty()) check_kafka(config.base, findings, &config.gate);
  check_traces(config.base, findings);
}

void check_all(const CheckOptions& options, const std::vector<HandlerFactory>& linked,
               Findings& findings) {
  const bool is_gate = config::is_gate_file(options.config.path);
  const std::string fix = std::string("see docs/") + (is_gate ? "gate.md" : "configuration.md") +
                          ", in /usr/share/doc/hapax if a package has brought hapax";
  findings.attempt("configuration", fix, [&] {
    if (is_gate) return check_gate(options.config, linked, findings);
    std::vector<std::string> warnings;
    const config::Config config = load(options.config, &warnings, &linked);
    warn_of_secrets(warnings, findings);
    findings.ok("configuration", options.config.path + ": group " + group_of(config) + ", " +
                                     std::to_string(config.routes.size()) + " routes, " +
                                     std::to_string(config.worker.lanes) + " lanes");
    tell_defaults(options.config.path, findings);
    check_handlers(config, "topic", options.config, linked, findings);
    for (const config::Route& route : config.routes) advise_batch(route, findings);
    check_postgres(config, findings);
    check_kafka(config, findings);
    check_traces(config, findings);
  });
}

void print(const Findings& findings) {
  for (const Finding& finding : findings.all()) {
    char severity[8];
    std::snprintf(severity, sizeof severity, "%-4s", name_of(finding.severity));
    print_line(std::string(severity) + "  " + finding.what + ": " + finding.found +
               (finding.fix.empty() ? "" : " → " + finding.fix));
  }
}

ExitCode check(const CheckOptions& options, const std::vector<HandlerFactory>& linked) {
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  Findings findings;
  check_all(options, linked, findings);
  if (options.json) {
    Json list = Json::array();
    for (const Finding& finding : findings.all())
      list.push_back({{"verdict", name_of(finding.severity)},
                      {"what", finding.what},
                      {"found", finding.found},
                      {"fix", finding.fix.empty() ? Json() : Json(finding.fix)}});
    print_json(list);
  } else {
    print(findings);
  }
  if (findings.has_wrong_configuration()) return kConfigWrong;
  return findings.any_failed() ? kFailed : kDone;
}

}  // namespace

void add_check(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "check",
      "Look for everything that would keep a worker or a gate from running, or from its promise");
  const auto options = std::make_shared<CheckOptions>();
  add_config(*command, options->config);
  command->add_option("--plugin", options->config.plugins,
                      "A plugin to load handlers from; may be repeated");
  command->add_flag("--json", options->json, "For programs");
  command->footer(
      "Each check prints a line: ok, warn or FAIL, what was found, how to fix it. Exit code 3 if\n"
      "the configuration or a handler is wrong, else 1 if a check fails. It joins no group and "
      "changes nothing of yours, but it calls the handlers'\n"
      "on_start, which may.\n"
      "Example:\n  hapax check -c worker.json --plugin ./libpayments.so");
  command->callback([&line, options] {
    line.command = [&line, options] { return check(*options, line.linked_handlers); };
  });
}

}  // namespace hapax::app
