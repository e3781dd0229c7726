// Runs the dead letters that operators want replayed, one at a time. It has a thread, a session and
// handler instances of its own, so neither lanes nor checkpoints wait for it.
//
// Asks PostgreSQL once a second, but not while it is away.
#pragma once

#include <condition_variable>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "flow/replay.hpp"
#include "sync/mutex.hpp"
#include "worker/lane.hpp"
#include "worker/outside_calls.hpp"
#include "worker/postgres_state.hpp"

namespace hapax::worker {

class Replays {
 public:
  // `handlers`: one a route, by index. `routes` outlives this.
  // `calls`: null if no route calls to the outside; outlives this.
  Replays(const LaneSetup& setup, const std::vector<flow::Route>& routes,
          std::vector<std::unique_ptr<Handler>> handlers, OutsideCalls* calls, std::uint64_t seed);

  // Blocks: until its replay has ended. If PostgreSQL does not take what came of a call, it waits
  // no more for that.
  ~Replays() { gives_up_.request_stop(); }
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;

  // What it runs now, for the watchdog. Any thread.
  std::optional<Lane::Running> running() const;

  // From now on begins no replay. Any thread.
  void stop() { thread_.request_stop(); }

  // True when nothing runs any more. Blocks: until then, or `until`. Precondition: stop().
  bool wait_idle(Clock::time_point until);

 private:
  void run(const std::stop_token& stop);
  bool turn();
  flow::Replayer::Outside calls_through(OutsideCalls& calls);
  void log(const flow::Replayed& replayed);
  void count();
  void set_running(const flow::Route* route, const store::Source& source);

  PostgresState& postgres_;
  observe::Metrics& metrics_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::string said_;                 // why it cannot ask; the thread's own
  Clock::time_point count_again_{};  // the thread's own
  std::stop_source gives_up_;
  mutable sync::Mutex mutex_;
  std::condition_variable ended_there_;
  std::optional<Lane::Running> running_ HAPAX_GUARDED_BY(mutex_);
  bool ended_ HAPAX_GUARDED_BY(mutex_) = false;
  flow::Replayer replayer_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::worker
