// hapax run: the worker.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <future>
#include <optional>
#include <string_view>
#include <thread>

#include "app/findings.hpp"
#include "app/publishing.hpp"
#include "cli/command.hpp"
#include "cli/version.hpp"
#include "flow/crash_point.hpp"
#include "kafka/consumer.hpp"
#include "observe/admin_server.hpp"
#include "observe/log.hpp"
#include "store/operator/migrate.hpp"
#include "worker/connect_options.hpp"
#include "worker/worker.hpp"

namespace hapax::app {
namespace {

namespace log = observe::log;

worker::StopSignal stop_signal{0};

// Two that come together are one: a supervisor and its init both pass it on.
constexpr std::int64_t kOneSignal = 500;  // milliseconds
constexpr std::chrono::seconds kEndTimeout{5};
std::atomic<std::int64_t> signalled_at{0};

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// The second one leaves at once: whatever is half done rolls back, that is the promise. Only what
// is allowed in a signal handler.
extern "C" void on_signal(int) {
  const std::int64_t now = milliseconds_now();
  if (stop_signal == 0) {
    signalled_at = now;
    stop_signal = 1;
    return;
  }
  if (now - signalled_at < kOneSignal) return;
  constexpr std::string_view kLine =
      "hapax: a second signal: stopping at once; what is open rolls back\n";
  (void)!write(STDERR_FILENO, kLine.data(), kLine.size());
  std::_Exit(kFailed);
}

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

// A handler that calls exit(0) must not look like a worker that was told to stop.
class ExitIsAFailure {
 public:
  ExitIsAFailure() {
    handlers_may_run = true;
    static const bool registered =
        std::atexit(refuse_exit) == 0 && std::at_quick_exit(refuse_exit) == 0;
    (void)registered;
  }
  ~ExitIsAFailure() { handlers_may_run = false; }
  ExitIsAFailure(const ExitIsAFailure&) = delete;
  ExitIsAFailure& operator=(const ExitIsAFailure&) = delete;

 private:
  static void refuse_exit() {
    if (!handlers_may_run) return;
    log::error("handler_exited", {},
               "a handler ended the process with exit(); what was open rolls back, and the message "
               "runs again");
    std::_Exit(kFailed);
  }
  static inline std::atomic<bool> handlers_may_run{false};
};

// PostgreSQL there and migrated; waits for both where the configuration says so.
void await_schema(const config::Config& config, observe::Health& health) {
  std::string said;
  while (stop_signal == 0) {
    std::string why;
    try {
      store::Session session(worker::connect_options(config));
      const auto problem = store::schema_problem(session, oldest_schema(config));
      if (!problem) return;
      why = *problem;
    } catch (const store::DatabaseError& error) {
      why = error.what();
    }
    if (!config.postgres.wait_at_start) throw Stop(kUnreachable, "PostgreSQL is not ready: " + why);
    if (why != said)
      log::warning("waiting_for_postgres", {{"error", why}}, "waiting for PostgreSQL");
    said = why;
    health.poll_turned();  // a restart would not help
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

// What `hapax check` calls a failure does not keep a worker from starting, but nobody shall learn
// of it from a doubled payment.
void warn_of_failed_checks(const config::Config& config) {
  Findings findings;
  check_postgres(config, findings);
  for (const Finding& finding : findings.all())
    if (finding.severity == Severity::fail)
      log::warning("check_failed", {{"check", finding.what}, {"found", finding.found}},
                   "`hapax check` fails; to fix it: " + finding.mend);
}

observe::AdminAnswers answers_of(const observe::Health& health, const observe::Metrics& metrics) {
  return {[&] { return metrics.text(); }, [&] { return health.live(); },
          [&] { return health.ready(); }};
}

std::unique_ptr<observe::AdminServer> serve_admin(const config::Config& config,
                                                  const observe::Health& health,
                                                  const observe::Metrics& metrics) {
  if (!config.admin.listen) return nullptr;
  const auto& [host, port] = *config.admin.listen;
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string listen = (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  try {
    auto server = std::make_unique<observe::AdminServer>(listen, answers_of(health, metrics));
    log::info("admin", {{"host", host}, {"port", server->port()}},
              "serving /metrics, /livez and /readyz");
    return server;
  } catch (const std::exception& error) {
    throw Stop(kConfigWrong, std::string("admin.listen: ") + error.what());
  }
}

// All is settled. What still waits for Kafka or PostgreSQL must not outlast it.
void end_in_time(const std::function<void()>& end) {
  std::packaged_task<void()> ending(end);
  const std::future<void> ended = ending.get_future();
  std::thread(std::move(ending)).detach();
  if (ended.wait_for(kEndTimeout) == std::future_status::ready) return;
  log::warning("gave_up_waiting", {},
               "the Kafka client or the relay does not end; leaving all the same");
  std::_Exit(kDone);
}

// After a topic was made again, librdkafka 2.0 may wait for a thread of its own for ever, and 2.8
// may crash.
void end(std::unique_ptr<worker::Worker> worker, std::optional<RelayThread>& relay) {
  if (kafka::is_broken_by_another_topic_id()) std::_Exit(kDone);
  end_in_time([&] {
    flow::crash_point("client_ends");
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
  observe::Health health;
  observe::Metrics metrics(versions());
  const auto admin = serve_admin(config, health, metrics);
  await_schema(config, health);
  if (stop_signal == 0) warn_of_failed_checks(config);
  const auto publishing = look_up_publishing(config, health, stop_signal);
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
  std::_Exit(kFailed);  // a handler may hang, and to destroy its lane would wait for it
}

// The relay alone: for a group whose workers may not write to the topics.
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
  const auto admin = serve_admin(config, health, metrics);
  await_schema(config, health);
  const auto publishing = look_up_publishing(config, health, stop_signal);
  if (stop_signal != 0) return kDone;
  std::optional<RelayThread> thread;
  thread.emplace(config, publishing.get(), metrics);
  health.started();
  log::info("relay", {{"group", config.kafka.properties.at("group.id")}}, "the relay works");
  while (stop_signal == 0) {
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
