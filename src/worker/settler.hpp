// What follows from the outcomes of messages: what settles, how long the rest waits, what halts.
//
// No thread and no clock of its own, so that tests can play lanes.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "flow/outcome.hpp"
#include "worker/lane_setup.hpp"

namespace hapax::worker {

// Thread safety: none; each lane has its own.
class Settler {
 public:
  explicit Settler(LaneSetup& setup) : setup_(setup), route_metrics_(setup.route_metrics) {}

  // Settles the messages of each work up to the first that is not settled, and says how long that
  // one waits from `now` on; then the works can be given back. `outcomes`: one an item, in order.
  // `trace`: of the run, for the log; may be null.
  // True when PostgreSQL is away.
  bool settle(std::span<Work> works, std::span<const flow::Outcome> outcomes, Clock::time_point now,
              const traces::Trace* trace = nullptr);

 private:
  bool settle_one(Work& work, std::span<const flow::Outcome> outcomes, Clock::time_point now);
  void tell(Partition& partition);
  void count(const Work& work, const Item& item, const flow::Outcome& outcome);
  void log_outcome(const Work& work, const Item& item, const flow::Outcome& outcome) const;
  void watch_for_breaks(const Work& work, const Item& item, const flow::Outcome& outcome);
  void ask_for_halt(const Work& work, const Item& item, const flow::Outcome& outcome);

  LaneSetup& setup_;
  const traces::Trace* trace_ = nullptr;  // of what is being settled
  std::vector<observe::RouteMetrics> route_metrics_;
  std::vector<Partition::Settled> settled_;  // that their partition has not been told of yet
};

}  // namespace hapax::worker
