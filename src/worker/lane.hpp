// One lane: a thread with a PostgreSQL connection and an instance of every handler.
//
// Takes the next messages, processes them, says what became of each. While PostgreSQL is away a
// lane takes nothing.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "flow/processor.hpp"
#include "observe/metrics.hpp"
#include "worker/breaker.hpp"
#include "worker/dispatcher.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"

namespace hapax::worker {

// What all lanes of a worker share. Outlives them.
struct LaneSetup {
  const std::string& group;
  const std::string& worker_name;
  flow::Processor::Connect connect;
  Dispatcher& dispatcher;
  Notices& notices;
  PostgresState& postgres;
  observe::Metrics& metrics;
  std::vector<observe::RouteMetrics> route_metrics;  // by route index
  std::deque<Breaker> breakers;                      // by route index
  // Called by the lane for each message once its fate is committed; for measuring. May be empty.
  // Blocks the lane, and must not throw.
  std::function<void(const Message&)> settled = {};
};

class Lane {
 public:
  // `handlers`: one a route, by route index.
  Lane(LaneSetup& setup, std::vector<std::unique_ptr<Handler>> handlers, std::uint64_t seed);

  // What it runs now, for the watchdog. Any thread.
  struct Running {
    store::Source source;
    std::string handler;
    Clock::time_point since;
  };
  std::optional<Running> running() const;

  // Asks it to end after the message it runs. Joins in the destructor.
  void stop() { thread_.request_stop(); }

 private:
  void run(const std::stop_token& stop);
  flow::Task task_of(const Work& work, const Item& item, bool cautious) const;
  bool run_batch(Batch batch);
  bool finish(Work work, std::span<const flow::Outcome> outcomes);
  std::chrono::milliseconds wait_after(Item& item, const flow::Outcome& outcome);
  void ask_for_halt(const Work& work, const Item& item, const flow::Outcome& outcome);
  void set_running(const flow::Task* task);
  void watch_for_breaks(const Work& work, const Item& item, const flow::Outcome& outcome);
  void count(const Work& work, const Item& item, const flow::Outcome& outcome);
  void log_outcome(const Item& item, const flow::Outcome& outcome) const;
  void wait_for_postgres(const std::stop_token& stop);

  LaneSetup& setup_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::vector<observe::RouteMetrics> route_metrics_;
  mutable std::mutex running_mutex_;
  std::optional<Running> running_;  // guarded by running_mutex_
  flow::Processor processor_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::worker
