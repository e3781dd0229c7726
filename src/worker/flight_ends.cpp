#include "worker/flight_ends.hpp"

namespace hapax::worker {

using flow::Outcome;

void FlightEnds::began(Flight& flight) {
  flight.is_begun = true;
  ++unaccounted_;
}

Flights::iterator FlightEnds::settle(Flights& flights, Flights::iterator flight, Outcome outcome,
                                     bool tells_of_handler) {
  if (tells_of_handler) flight->task.breaker->learn(outcome);
  outcome.announced = flight->item().announced;  // a lane made the announcement, and withdraws it
  settler_.settle(std::span(&flight->work, 1), std::span(&outcome, 1), Clock::now(),
                  flight->task.trace);
  return finish(flights, flight);
}

Flights::iterator FlightEnds::pass_to_lane(Flights& flights, Flights::iterator flight) {
  flight->item().for_lane = true;
  flight->item().not_before = {};
  return finish(flights, flight);
}

Flights::iterator FlightEnds::finish(Flights& flights, Flights::iterator flight) {
  holder_.keys.remove(flight->key);
  --of_route_[flight->route()];
  if (flight->is_begun) --unaccounted_;
  std::vector<Work> works;
  works.push_back(std::move(flight->work));
  const auto next = flights.erase(flight);
  dispatcher_.finish(std::move(works));
  return next;
}

void FlightEnds::leave(Flight& flight, bool uncalled) {
  holder_.keys.leave(std::exchange(flight.key, {}), {.identity = flight.identity,
                                                     .scope = flight.task.route.key.scope,
                                                     .holder = holder_.id,
                                                     .uncalled = uncalled});
}

}  // namespace hapax::worker
