#include "app/serving.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <future>
#include <string_view>
#include <thread>

#include "cli/exit_code.hpp"
#include "observe/log.hpp"
#include "observe/service_manager.hpp"
#include "store/operator/migrate.hpp"
#include "store/operator/roles.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {

worker::StopSignal stop_signal{0};

namespace {

namespace log = observe::log;

// Two signals within this time count as one, because a supervisor and its init may both pass it on.
constexpr std::int64_t kOneSignal = 500;  // milliseconds
std::atomic<std::int64_t> signalled_at{0};

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// The second signal ends the process at once. That is safe, because open transactions roll back.
// Calls only functions that are allowed in a signal handler.
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

constexpr std::chrono::seconds kEndTimeout{5};

std::atomic<bool> handlers_may_run{false};

void refuse_exit() {
  if (!handlers_may_run) return;
  log::error("handler_exited", {},
             "a handler ended the process with exit(); what was open rolls back, and the message "
             "runs again");
  std::_Exit(kFailed);
}

// The error's text, with what to do about it if the text alone does not tell.
std::string explained(const store::DatabaseError& error) {
  std::string text = error.what();
  text.erase(text.find_last_not_of('\n') + 1);
  if (error.sqlstate() == "42501")
    text += ": run " + store::roles_file() + " with this role as `worker`";
  return text;
}

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

ExitIsAFailure::ExitIsAFailure() {
  handlers_may_run = true;
  static const bool registered =
      std::atexit(refuse_exit) == 0 && std::at_quick_exit(refuse_exit) == 0;
  (void)registered;
}

ExitIsAFailure::~ExitIsAFailure() { handlers_may_run = false; }

void await_schema(const config::Config& config, int oldest, const std::function<void()>& turned) {
  std::string said;
  while (stop_signal == 0) {
    std::string why;
    bool is_there = false;
    try {
      store::Session session(worker::connect_options(config));
      const auto problem = store::schema_problem(session, oldest);
      if (!problem) return;
      is_there = true;
      why = *problem;
    } catch (const store::DatabaseError& error) {
      why = explained(error);
    }
    if (!config.postgres.wait_at_start) throw Stop(kUnreachable, "PostgreSQL is not ready: " + why);
    if (why != said) {
      log::warning("waiting_for_postgres", {{"error", why}},
                   is_there ? "PostgreSQL answers; waiting for hapax's schema in it"
                            : "waiting for PostgreSQL");
      observe::service_manager::ready("waiting for PostgreSQL: " + why);
    }
    said = why;
    turned();  // a restart would not help
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

std::unique_ptr<observe::AdminServer> serve_admin(const config::Config& config,
                                                  observe::AdminAnswers answers) {
  if (!config.admin.listen) return nullptr;
  const auto& [host, port] = *config.admin.listen;
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string listen = (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  try {
    auto server = std::make_unique<observe::AdminServer>(listen, std::move(answers));
    log::info("admin", {{"host", host}, {"port", server->port()}},
              "serving /metrics, /livez and /readyz");
    return server;
  } catch (const std::exception& error) {
    throw Stop(kConfigWrong, error.what());  // it names admin.listen
  }
}

void end_in_time(const std::function<void()>& end) {
  std::packaged_task<void()> ending(end);
  const std::future<void> ended = ending.get_future();
  std::thread(std::move(ending)).detach();
  if (ended.wait_for(kEndTimeout) == std::future_status::ready) return;
  log::warning("gave_up_waiting", {},
               "PostgreSQL, the Kafka client, the relay or the sending of spans does not end; "
               "leaving all the same");
  std::_Exit(kDone);
}

}  // namespace hapax::app
