// Decides what follows from the outcomes of messages: which settle, how long the others wait, what
// halts.
//
// It has no thread and no clock of its own, so tests can act as lanes.
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

  // Settles the messages of each work up to the first that is not settled, and sets how long that
  // one waits from `now` on. Then the lane can give the works back. Returns true if PostgreSQL is
  // away.
  // `outcomes`: one for each item, in order. `trace`: of the run, for the log; may be null.
  bool settle(std::span<Work> works, std::span<const flow::Outcome> outcomes, Clock::time_point now,
              const traces::Trace* trace = nullptr);

 private:
  bool settle_one(Work& work, std::span<const flow::Outcome> outcomes, Clock::time_point now);
  void tell(Partition& partition);
  void tell_of_wait(const Work& work, Item& item, const flow::Outcome& outcome,
                    Clock::time_point now);
  void count(const Work& work, const Item& item, const flow::Outcome& outcome);
  void log_outcome(const Work& work, const Item& item, const flow::Outcome& outcome) const;
  void watch_for_breaks(const Work& work, const Item& item, const flow::Outcome& outcome);
  void ask_for_halt(const Work& work, const Item& item, const flow::Outcome& outcome);

  LaneSetup& setup_;
  const traces::Trace* trace_ = nullptr;  // of the run that is being settled
  std::vector<observe::RouteMetrics> route_metrics_;
  std::vector<Partition::Settled> settled_;  // not yet reported to their partition
};

}  // namespace hapax::worker
