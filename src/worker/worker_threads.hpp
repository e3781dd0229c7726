// The threads that a worker starts beside the poll thread and those of the keeper: lanes, calls to
// the outside, replays and retention.
//
// Owned by the poll thread.
#pragma once

#include <memory>
#include <vector>

#include "config/config.hpp"
#include "flow/route.hpp"
#include "observe/health.hpp"
#include "worker/keeper.hpp"
#include "worker/lane.hpp"
#include "worker/lane_setup.hpp"
#include "worker/outside_calls.hpp"
#include "worker/replays.hpp"
#include "worker/retention.hpp"

namespace hapax::worker {

class WorkerThreads {
 public:
  // Makes the handlers and calls their on_start. Starts no thread yet. All references outlive this.
  // Throws: std::runtime_error that names the handler whose on_start threw.
  WorkerThreads(const config::Config& config, const std::vector<flow::Route>& routes,
                LaneSetup& setup, observe::Health& health);

  // Call it once.
  void start(Keeper& keeper);

  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }
  const Replays& replays() const { return *replays_; }

  // Logs what each lane runs, and the calls to the outside.
  void tell_running() const;
  // Logs the answers of calls to the outside that are lost if the process ends now.
  void tell_not_kept() const {
    if (calls_) calls_->tell_not_kept();
  }
  // Whether a lane runs a handler, or a call runs. If not, the lanes' messages wait for PostgreSQL.
  bool handlers_run() const;
  // Whether a call runs, or has come back and PostgreSQL does not know it yet.
  bool calls_run() const { return calls_ && calls_->is_busy(); }
  // Whether a call has not come back though it was asked to stop.
  bool call_hangs() const { return calls_ && calls_->in_flight().hangs(); }
  void ask_calls_to_stop() const {
    if (calls_) calls_->in_flight().ask_to_stop();
  }

  // From now on no replay and no call begins.
  void wind_down();
  // True when no replay runs any more. Blocks: until then, or `until`. Precondition: wind_down().
  bool replays_are_idle(Clock::time_point until) { return replays_->wait_idle(until); }

  // Ends all threads. Blocks: until each has finished its work.
  void end();

 private:
  using Handlers = std::vector<std::unique_ptr<Handler>>;  // one a route
  Handlers make_handlers(observe::Health& health) const;
  OutsideCalls::Handlers make_callers(std::size_t route, observe::Health& health) const;

  const config::Config& config_;
  const std::vector<flow::Route>& routes_;
  LaneSetup& setup_;
  std::vector<Handlers> handlers_;                     // by lane, until start()
  Handlers replay_handlers_;                           // until start()
  std::vector<OutsideCalls::Handlers> call_handlers_;  // by route, until start()

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<OutsideCalls> calls_;  // none if no route calls to the outside
  std::unique_ptr<Retention> retention_;
  std::unique_ptr<Replays> replays_;
};

}  // namespace hapax::worker
