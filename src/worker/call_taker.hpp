// Takes the keys of messages whose routes call to the outside, and lets their calls begin. If a
// message needs no call, it goes to a lane, which decides as for other routes.
#pragma once

#include <random>
#include <vector>

#include "flow/lane_session.hpp"
#include "outside/holder.hpp"
#include "worker/call_accounts.hpp"
#include "worker/calls_in_flight.hpp"
#include "worker/flight_ends.hpp"

namespace hapax::worker {

// Thread safety: none.
class CallTaker {
 public:
  // What it works with; all of it outlives the taker.
  struct Parts {
    LaneSetup& setup;
    const std::vector<flow::Route>& routes;
    outside::Holder& holder;
    flow::LaneSession& session;
    CallsInFlight& in_flight;
    FlightEnds& ends;
    CallAccounts& accounts;
  };
  CallTaker(const Parts& parts, std::uint64_t seed) : parts_(parts), random_(seed) {}

  // Takes what is ready and has room. Throws: DatabaseError; then nothing of it is begun.
  void take();

  // Whether the last take left messages, because lanes book more slowly than calls are answered.
  bool waits_for_lanes() const { return waits_for_lanes_; }

 private:
  std::size_t room(std::size_t route);
  void prepare(Flights& flights);
  bool is_for_lane(Flight& flight);
  void take_keys(Flights& flights, bool alone);
  void see_position(const Flights& flights);
  void begin(Flights& flights, Flights::iterator flight);

  const Parts parts_;
  std::minstd_rand random_;
  bool waits_for_lanes_ = false;
};

}  // namespace hapax::worker
