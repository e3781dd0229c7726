// What becomes of calls that came back: answers are kept and go to a lane, all others are settled.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "flow/lane_session.hpp"
#include "sync/mutex.hpp"
#include "worker/calls_in_flight.hpp"
#include "worker/flight_ends.hpp"

namespace hapax::worker {

// Thread safety: none, but for tell_not_kept(). Throws: DatabaseError; what is not accounted for
// stays.
class CallAccounts {
 public:
  // All outlive this.
  CallAccounts(LaneSetup& setup, const std::vector<flow::Route>& routes, flow::LaneSession& session,
               CallsInFlight& in_flight, FlightEnds& ends, std::uint64_t seed);

  // Accounts for the calls that came back: first the answers, in one transaction. If a call's key
  // is locked, or PostgreSQL refuses it, that call waits, and holds up no other. `meanwhile`:
  // called before each of the others, which may be a thousand.
  void keep_ended(const std::function<void()>& meanwhile);

  // Counts the calls whose outcome is unknown, for metrics, if it is time to.
  void count_unknown();
  Clock::time_point count_again() const { return count_again_; }

  // Whether calls that came back are not accounted for.
  bool any() const { return !done_.empty(); }
  // Finishes these as they are.
  void finish_all();

  // Logs the answers that PostgreSQL does not have yet. Any thread.
  void tell_not_kept() const;

  // The answer counts as waiting until a lane has booked it, or the message is dropped.
  flow::Answered answered(std::size_t route, std::int64_t token, std::string answer) const;
  // How many answers of the route wait for a lane.
  std::size_t waiting(std::size_t route) const { return *answers_[route]; }

  // A call of the route begins.
  void began(std::size_t route) { metrics_.at(route).began(); }

 private:
  void collect_ended();
  void keep_answers(const std::function<void()>& meanwhile);
  std::vector<store::Kept> keep(const std::vector<Flight*>& answered,
                                const std::function<void()>& meanwhile,
                                std::exception_ptr& refused);
  void count(const Flight& ended);
  void set_not_kept(const Flight& flight, bool is_not_kept);

  const bool log_error_text_;
  const std::vector<flow::Route>& routes_;
  flow::LaneSession& session_;
  CallsInFlight& in_flight_;
  FlightEnds& ends_;
  std::minstd_rand random_;
  std::map<std::size_t, observe::CallMetrics> metrics_;  // by route index
  Clock::time_point count_again_{};
  Flights done_;  // that came back, and are not accounted for yet
  // By route index. Lanes count down.
  std::vector<std::shared_ptr<std::atomic<std::size_t>>> answers_;
  mutable sync::Mutex mutex_;
  // Those of done_ that were answered. They do not change while they are here.
  std::set<const Flight*> not_kept_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::worker
