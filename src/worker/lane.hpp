// One lane: a thread with a PostgreSQL connection and an instance of every handler.
//
// It takes the next messages, processes them, and reports the outcome of each. While PostgreSQL is
// away, a lane takes nothing.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sync/mutex.hpp"
#include "traces/tracer.hpp"
#include "worker/lane_setup.hpp"
#include "worker/settler.hpp"

namespace hapax::worker {

class Lane {
 public:
  // `handlers`: one for each route, by route index.
  Lane(LaneSetup& setup, std::vector<std::unique_ptr<Handler>> handlers, std::uint64_t seed);

  // The message that it has now, for the watchdog. Any thread.
  struct Running {
    store::Source source;
    std::string handler;
    std::optional<Clock::time_point> since;  // when its handler began; nothing: it does not run
    std::int64_t epoch = 0;                  // of its partition
  };
  std::optional<Running> running() const;

  // Asks it to end after the message it runs. Joins in the destructor.
  void stop() { thread_.request_stop(); }

 private:
  void run(const std::stop_token& stop);
  bool run_batch(Batch batch, const std::stop_token& stop);
  std::vector<flow::Job> jobs_of(Batch& batch);
  std::vector<flow::Outcome> run_jobs(std::vector<flow::Job>& jobs, Batch& batch);
  const flow::Task* prefetch(const Work& current);
  void return_prefetched();
  void begin_run(std::vector<flow::Job>& jobs, std::vector<Work>& works, Clock::time_point now);
  void end_run(std::span<const flow::Outcome> outcomes, Clock::time_point now);
  void set_running(const flow::Task* task);
  void watch(const flow::Task* task, Clock::time_point now);
  void wait_for_postgres(const std::stop_token& stop);

  LaneSetup& setup_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  Settler settler_;
  traces::Runs runs_;
  // The message that the lane has now. These are copies, so the watchdog may read them at any time.
  // The route lives as long as the worker.
  struct Current {
    const flow::Route& route;
    std::int32_t generation, partition;
    std::int64_t offset, epoch;
  };
  static Current current_of(const flow::Task& task);
  mutable sync::Mutex running_mutex_;
  std::optional<Current> running_ HAPAX_GUARDED_BY(running_mutex_);
  std::optional<Clock::time_point> handler_since_ HAPAX_GUARDED_BY(running_mutex_);
  flow::Processor processor_;
  std::optional<Work> next_;  // one message to go on with; processor_ may have its key already
  std::optional<flow::Task> next_task_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::worker
