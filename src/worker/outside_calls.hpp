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
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "flow/attempt.hpp"
#include "outside/holder.hpp"
#include "worker/calls_in_flight.hpp"
#include "worker/lane_setup.hpp"
#include "worker/settler.hpp"
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
  bool is_busy() const { return unaccounted_ > 0 || in_flight_.any(); }

  // The calls that run now, and how to make and to stop them. Any thread.
  CallsInFlight& in_flight() { return in_flight_; }
  const CallsInFlight& in_flight() const { return in_flight_; }

  // The holder under which replays call. Any thread.
  outside::Holder& holder() { return holder_; }

 private:
  void run(const std::stop_token& stop);
  void end_lease();
  bool turn(bool takes);
  void delayed(const store::DatabaseError& error);
  void renew();
  Clock::time_point next_look() const;

  void take();
  void prepare(Flights& flights);
  bool is_for_lane(Flight& flight);
  void take_keys(Flights& flights, bool alone);
  void leave(Flight& flight, bool uncalled);
  void begin(Flights& flights, Flights::iterator flight);
  std::size_t room(std::size_t route);

  void keep_ended();
  void collect_ended();
  void keep_answers();
  void log_not_kept(const Flight& flight);
  std::vector<store::Kept> keep(const std::vector<Flight*>& answered);
  flow::Answered waiting(std::size_t route, std::int64_t token, std::string answer) const;
  void count(const Flight& ended);
  void count_unknown();

  Flights::iterator settle(Flights& flights, Flights::iterator flight, flow::Outcome outcome,
                           bool tells_of_handler = true);
  Flights::iterator pass_to_lane(Flights& flights, Flights::iterator flight);
  Flights::iterator finish(Flights& flights, Flights::iterator flight);

  LaneSetup& setup_;
  const std::vector<flow::Route>& routes_;
  outside::Holder holder_;
  std::minstd_rand random_;
  Settler settler_;
  flow::LaneSession session_;
  std::map<std::size_t, observe::CallMetrics> metrics_;  // by route index
  Clock::time_point count_again_{};
  Clock::time_point try_again_{};      // PostgreSQL is away until then
  std::string said_;                   // why PostgreSQL refuses
  Flights done_;                       // that came back, and are not accounted for yet
  std::vector<std::size_t> of_route_;  // flights, by route index
  // How many answers wait for a lane, by route index. Lanes count down.
  std::vector<std::shared_ptr<std::atomic<std::size_t>>> answers_;
  bool waits_for_lanes_ = false;
  std::atomic<std::size_t> unaccounted_ = 0;  // calls that were begun for messages
  std::atomic<bool> gives_up_ = false;
  StepDesk steps_;
  CallsInFlight in_flight_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::worker
