// hapax gate: the HTTP server.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>
#include <thread>

#include "app/gate_publishing.hpp"
#include "app/gate_setup.hpp"
#include "app/publishing.hpp"
#include "app/serving.hpp"
#include "cli/command.hpp"
#include "cli/version.hpp"
#include "gate/accept.hpp"
#include "gate/gate.hpp"
#include "gate/open_files.hpp"
#include "observe/log.hpp"
#include "observe/service_manager.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {
namespace {

namespace log = observe::log;

ExitCode gate(const ConfigOption& option, std::vector<HandlerFactory> linked) {
  std::vector<std::string> warnings;
  const config::GateConfig config = load_gate(option, warnings);
  log::set_up(config.base.log.level, config.base.log.format);
  for (const std::string& warning : warnings) log::warning("open_secret", {}, warning);
  catch_signals();
  gate::raise_open_files();
  const auto operations = operations_of(config);
  const auto tls = tls_of(config);
  for (HandlerFactory& own : gate::own_handlers(config.gate, operations ? &*operations : nullptr))
    linked.push_back(std::move(own));
  std::vector<flow::Route> routes = routes_of(config.base, option, linked);
  observe::Metrics metrics(versions());
  gate::Status status(metrics);
  const auto admin =
      serve_admin(config.base, {[&] { return metrics.text(status.ready().ok); },
                                [&] { return status.live(); }, [&] { return status.ready(); }});
  await_schema(config.base, oldest_schema(config.base), &observe::service_manager::alive);
  metrics.postgres_came_up();
  std::optional<GatePublishing> publishing;  // outlives the lanes
  publishing.emplace(config.base, status, metrics);
  publishing->await_a_moment();
  if (stop_signal != 0) return kDone;
  for (flow::Route& route : routes) route.publishing = publishing->for_routes();
  const ExitIsAFailure exit_is_a_failure;
  std::unique_ptr<gate::Gate> running;
  try {
    running = std::make_unique<gate::Gate>(
        config, std::move(routes),
        [&config] { return store::Session(worker::connect_options(config.base)); }, status, metrics,
        operations ? &*operations : nullptr, tls.get());
    running->start();
  } catch (const std::runtime_error& error) {
    throw Stop(kConfigWrong, error.what());
  }
  log::info("gate", {{"host", config.gate.listen.host}, {"port", running->port()}},
            "the gate takes requests");
  observe::service_manager::ready("the gate takes requests");
  while (stop_signal == 0 && !running->hangs()) {
    observe::service_manager::alive();
    publishing->check();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  observe::service_manager::stopping();
  if (stop_signal == 0)
    log::error("all_lanes_hang", {},
               "no handler of any lane comes back (gate.handler_timeout); ending the process");
  else
    log::info("draining", {}, "told to stop; requests in flight are answered");
  if (running->drain()) {
    end_in_time([&] {
      running.reset();
      publishing.reset();
    });
    return kDone;
  }
  log::error("gave_up_waiting", {},
             "a handler has not come back, or a request was not answered within "
             "gate.shutdown_timeout; leaving all the same: what is open rolls back");
  std::_Exit(kFailed);
}

}  // namespace

void add_gate(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "gate",
      "Serve HTTP requests with an Idempotency-Key. SIGTERM drains and leaves; a second stops at "
      "once");
  const auto option = std::make_shared<ConfigOption>();
  add_config(*command, *option);
  command->add_option("--plugin", option->plugins,
                      "A plugin to load handlers from; may be repeated");
  command->footer("Example:\n  hapax gate -c gate.json --plugin ./libpayments.so");
  command->callback([&line, option] {
    line.command = [&line, option] { return gate(*option, line.linked_handlers); };
  });
}

}  // namespace hapax::app
