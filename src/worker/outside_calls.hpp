// The calls of outside routes: takes their keys, lets callers make the calls, and keeps the
// answers.
//
//   dispatcher ─take_calls─▶ key taken, committed ─▶ a caller's thread ─▶ answer committed ─▶ a
//   lane
//
// One thread and one session do all of it, so many messages share one transaction for takes,
// answers and the lease. If a message needs no call, it goes to a lane, which decides as for other
// routes.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "flow/lane_session.hpp"
#include "outside/holder.hpp"
#include "worker/call_accounts.hpp"
#include "worker/call_taker.hpp"
#include "worker/calls_in_flight.hpp"
#include "worker/flight_ends.hpp"
#include "worker/lane_setup.hpp"
#include "worker/step_desk.hpp"

namespace hapax::worker {

class OutsideCalls {
 public:
  using Handlers = CallsInFlight::Handlers;

  // `handlers`: by route index, one for each call at once; none for a route that does not call.
  OutsideCalls(LaneSetup& setup, const std::vector<flow::Route>& routes,
               std::vector<Handlers> handlers, std::uint64_t seed);
  // Blocks: until the calls that run have come back.
  ~OutsideCalls();

  // From now on takes no key, and begins no call of a taken one. It still keeps the answers of
  // running calls. Any thread.
  void stop();

  // If PostgreSQL does not take an answer now, leaves the key until the lease runs out. Any thread.
  void give_up();

  // Whether a call runs, or PostgreSQL does not know the answer of one yet. Any thread.
  bool is_busy() const { return ends_.unaccounted() > 0 || in_flight_.any(); }

  // The calls that run now, and how to make and to stop them. Any thread.
  CallsInFlight& in_flight() { return in_flight_; }
  const CallsInFlight& in_flight() const { return in_flight_; }

  // Logs the calls that run. Any thread.
  void tell_running() const;

  // Logs the answers of calls and of their steps that PostgreSQL does not have yet. Any thread.
  void tell_not_kept() const;

  // The holder under which replays call. Any thread.
  outside::Holder& holder() { return holder_; }

 private:
  void run(const std::stop_token& stop);
  void end_lease();
  bool turn(bool takes);
  void delayed(const store::DatabaseError& error);
  void renew();
  void leave_lost_ends();
  Clock::time_point next_look() const;

  LaneSetup& setup_;
  outside::Holder holder_;
  flow::LaneSession session_;
  Clock::time_point try_again_{};  // PostgreSQL is away until then
  std::string said_;               // why PostgreSQL refuses
  std::atomic<bool> gives_up_ = false;
  StepDesk steps_;
  CallsInFlight in_flight_;
  FlightEnds ends_;
  CallAccounts accounts_;
  CallTaker taker_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::worker
