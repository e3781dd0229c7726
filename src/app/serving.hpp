// What all commands share that run until they are told to stop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "cli/command.hpp"
#include "observe/admin_server.hpp"
#include "worker/worker.hpp"

namespace hapax::app {

// Not 0 once the process was told to stop.
extern worker::StopSignal stop_signal;

// SIGTERM and SIGINT set stop_signal. The second one ends the process at once.
void catch_signals();

// If a handler calls exit(0), the process must not look like one that was told to stop.
class ExitIsAFailure {
 public:
  ExitIsAFailure();
  ~ExitIsAFailure();
  ExitIsAFailure(const ExitIsAFailure&) = delete;
  ExitIsAFailure& operator=(const ExitIsAFailure&) = delete;
};

// Returns if PostgreSQL answers and its schema is `oldest` or newer. Waits for both if
// postgres.wait_at_start is on. `turned`: called while it waits. Throws: Stop(kUnreachable).
void await_schema(const config::Config& config, int oldest, const std::function<void()>& turned);

// Nothing if admin.listen is off. Throws: Stop(kConfigWrong).
std::unique_ptr<observe::AdminServer> serve_admin(const config::Config& config,
                                                  observe::AdminAnswers answers);

// Runs `end`, when all is settled. If `end` waits for Kafka or PostgreSQL for seconds, the process
// ends all the same.
void end_in_time(const std::function<void()>& end);

}  // namespace hapax::app
