// hapax run: the worker.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "app/findings.hpp"
#include "app/publishing.hpp"
#include "app/serving.hpp"
#include "cli/command.hpp"
#include "cli/version.hpp"
#include "flow/crash_point.hpp"
#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "observe/log.hpp"
#include "observe/service_manager.hpp"
#include "store/fault.hpp"
#include "worker/connect_options.hpp"
#include "worker/worker.hpp"

namespace hapax::app {
namespace {

namespace log = observe::log;

constexpr int kTurnsBetweenLooks = 50;  // a relay looks at PostgreSQL every five seconds

// Logs each failure that `hapax check` would find. It does not keep the worker from starting. But
// operators must not learn of it from a doubled payment.
void warn_of_failed_checks(const config::Config& config) {
  Findings findings;
  check_postgres(config, findings);
  for (const Finding& finding : findings.all())
    if (finding.severity == Severity::fail)
      log::warning("check_failed", {{"check", finding.what}, {"found", finding.found}},
                   "`hapax check` fails; to fix it: " + finding.fix);
}

// Called before the worker waits for PostgreSQL, because a mistake does not pass by waiting.
void check_kafka_properties(const config::Config& config) {
  try {
    kafka::check_properties(config.kafka.properties);
  } catch (const std::runtime_error& error) {
    throw Stop(kConfigWrong, error.what());
  }
}

observe::AdminAnswers answers_of(const observe::Health& health, const observe::Metrics& metrics) {
  return {[&] { return metrics.text(health.ready().ok); }, [&] { return health.live(); },
          [&] { return health.ready(); }};
}

// After a topic was made again, librdkafka 2.0 may wait for a thread of its own for ever, and 2.8
// may crash. So the consumer is not destroyed there, but all else ends.
void end(std::unique_ptr<worker::Worker> worker, std::optional<RelayThread>& relay) {
  end_in_time([&] {
    flow::crash_point("client_ends");
    if (relay) relay->stop();  // leaves while the worker ends, which may wait for a collector
    if (kafka::is_broken_by_another_topic_id()) {
      worker->end_traces();
      if (relay) relay->join();
      std::_Exit(kDone);
    }
    worker.reset();
    relay.reset();
  });
}

ExitCode run(const ConfigOption& option, const std::vector<HandlerFactory>& linked) {
  std::vector<std::string> warnings;
  const config::Config config = load(option, &warnings, &linked);
  log::set_up(config.log.level, config.log.format);
  for (const std::string& warning : warnings) log::warning("open_secret", {}, warning);
  catch_signals();
  std::vector<flow::Route> routes = routes_of(config, option, linked);
  check_kafka_properties(config);
  observe::Health health;
  observe::Metrics metrics(versions());
  const auto admin = serve_admin(config, answers_of(health, metrics));
  await_schema(config, oldest_schema(config), [&] { health.poll_turned(); });
  metrics.postgres_came_up();  // the worker may wait long for Kafka
  if (stop_signal == 0) health.postgres(true, true);
  if (stop_signal == 0) warn_of_failed_checks(config);
  const auto publishing =
      look_up_publishing(config, {.turned = [&] { health.poll_turned(); }}, stop_signal);
  if (stop_signal != 0) {
    log::info("stopped", {{"left_group", false}}, "stopped before it had joined the group");
    return kDone;
  }
  std::optional<RelayThread> relay;  // outlives the lanes, which nudge it
  if (needs_relay(config)) relay.emplace(config, publishing.get(), metrics);
  if (publishing) {
    publishing->committed = [&relay] { relay->relay().nudge(); };
    for (flow::Route& route : routes) route.publishing = publishing;
  }
  const ExitIsAFailure exit_is_a_failure;
  std::unique_ptr<worker::Worker> running;
  try {
    running = std::make_unique<worker::Worker>(config, std::move(routes), health, metrics);
  } catch (const std::exception& error) {
    throw Stop(kConfigWrong, error.what());
  }
  if (const auto problem = running->await_topics(stop_signal)) throw Stop(kUnreachable, *problem);
  switch (running->run(stop_signal)) {
    case worker::Ended::stopped: end(std::move(running), relay); return kDone;
    case worker::Ended::gave_up_waiting:
      log::warning(
          "gave_up_waiting", {},
          "a handler, Kafka or PostgreSQL does not answer; leaving all the same: what is open "
          "rolls back");
      std::_Exit(kDone);
    case worker::Ended::handlers_run:
      log::error("handlers_run", {},
                 "a handler has not come back; leaving all the same: what is open rolls back");
      break;
    case worker::Ended::handler_hangs:
    case worker::Ended::fatal: break;
  }
  std::_Exit(kFailed);  // a handler may hang, and the destructor of its lane would wait for it
}

// The relay itself waits for PostgreSQL and reports nothing to the probes.
void look_for_postgres(const config::Config& config, observe::Health& health,
                       observe::Metrics& metrics) {
  try {
    const store::Session session(worker::connect_options(config));
    health.postgres(true, true);
    metrics.postgres_came_up();
  } catch (const store::DatabaseError& error) {
    health.postgres(false, false, error.sqlstate());
    metrics.postgres_went_down();
  }
}

// Runs only the relay, for a group whose workers may not write to the topics.
ExitCode relay(const ConfigOption& option) {
  const config::Config config = load(option);
  if (!needs_relay(config))
    throw Stop(kConfigWrong,
               "publish.topics is empty, and no route has a dead_letter_topic: there is nothing to "
               "send");
  log::set_up(config.log.level, config.log.format);
  catch_signals();
  observe::Health health;
  observe::Metrics metrics(versions());
  const auto admin = serve_admin(config, answers_of(health, metrics));
  await_schema(config, oldest_schema(config), [&] { health.poll_turned(); });
  const auto publishing =
      look_up_publishing(config, {.turned = [&] { health.poll_turned(); }}, stop_signal);
  if (stop_signal != 0) return kDone;
  std::optional<RelayThread> thread;
  thread.emplace(config, publishing.get(), metrics);
  health.consumes_nothing();
  health.started();
  log::info("relay", {{"group", config.kafka.properties.at("group.id")}}, "the relay works");
  observe::service_manager::ready("the relay works");
  for (int turn = 0; stop_signal == 0; ++turn) {
    if (turn % kTurnsBetweenLooks == 0) look_for_postgres(config, health, metrics);
    health.poll_turned();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  end_in_time([&] { thread.reset(); });
  return kDone;
}

}  // namespace

void add_relay(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "relay", "Send published records to Kafka without consuming anything, until SIGTERM");
  const auto option = std::make_shared<ConfigOption>();
  add_config(*command, *option);
  command->footer(
      "One relay of a group works at a time; each `hapax run` has one, too.\n"
      "Example:\n  hapax relay -c worker.json");
  command->callback([&line, option] { line.command = [option] { return relay(*option); }; });
}

void add_run(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "run",
      "Run a worker of the consumer group. SIGTERM drains and leaves; a second stops at once");
  const auto option = std::make_shared<ConfigOption>();
  add_config(*command, *option);
  command->add_option("--plugin", option->plugins,
                      "A plugin to load handlers from; may be repeated");
  command->footer("Example:\n  hapax run -c worker.json --plugin ./libpayments.so");
  command->callback([&line, option] {
    line.command = [&line, option] { return run(*option, line.linked_handlers); };
  });
}

}  // namespace hapax::app
