// How messages leave the thread that makes calls: they are settled, or go to a lane.
#pragma once

#include <atomic>
#include <vector>

#include "outside/holder.hpp"
#include "worker/calls_in_flight.hpp"
#include "worker/lane_setup.hpp"
#include "worker/settler.hpp"

namespace hapax::worker {

// Thread safety: none, but for unaccounted().
class FlightEnds {
 public:
  // `setup` and `holder` outlive this.
  FlightEnds(LaneSetup& setup, outside::Holder& holder, std::size_t routes)
      : dispatcher_(setup.dispatcher), holder_(holder), settler_(setup), of_route_(routes) {}

  void entered(const Flight& flight) { ++of_route_[flight.route()]; }
  void began(Flight& flight);

  // Each takes the flight out of `flights`, and returns the next one.
  // `tells_of_handler`: the breaker learns from the outcome.
  Flights::iterator settle(Flights& flights, Flights::iterator flight, flow::Outcome outcome,
                           bool tells_of_handler = true);
  Flights::iterator pass_to_lane(Flights& flights, Flights::iterator flight);
  Flights::iterator finish(Flights& flights, Flights::iterator flight);

  // PostgreSQL may keep the key, though this process does not go on with it.
  void leave(Flight& flight, bool uncalled);

  // How many of the route are not finished.
  std::size_t of_route(std::size_t route) const { return of_route_[route]; }
  // Calls that were begun for messages, and are not finished. Any thread.
  std::size_t unaccounted() const { return unaccounted_; }

 private:
  Dispatcher& dispatcher_;
  outside::Holder& holder_;
  Settler settler_;
  std::vector<std::size_t> of_route_;  // by route index
  std::atomic<std::size_t> unaccounted_ = 0;
};

}  // namespace hapax::worker
