// Stands between the flow and the handler under test: counts its runs and statements, and makes
// PostgreSQL fail at a point that a test chooses. Of a handler that calls to the outside it sees
// the bookings.
//
// Thread safety: none; as a handler, it belongs to one lane.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "hapax/outside.hpp"
#include "hapax/testing.hpp"

namespace hapax::testing {

class Probe {
 public:
  // From now on. Throws: std::invalid_argument if PostgreSQL knows no such SQLSTATE.
  void arm(const std::optional<Fault>& fault);

  int runs() const { return runs_; }
  int statements() const { return statements_; }  // of the last run

  // Calls it once, between the end of the next run and its completion.
  void hold(std::function<void()> while_open) { while_open_ = std::move(while_open); }

  // Counts it as a run, with the fault that is armed.
  void run(Context& context, const std::function<void(Context&)>& handler);

 private:
  std::optional<Fault> fault_;  // for fault_->runs more runs
  std::function<void()> while_open_;
  int runs_ = 0;
  int statements_ = 0;
};

// The same handler, with `probe` before it. The probe outlives it.
std::unique_ptr<Handler> probed(std::unique_ptr<Handler> handler, Probe& probe);

// The same of one that calls to the outside: what a lane has of it.
std::unique_ptr<Handler> probed(std::unique_ptr<OutsideHandler> handler, Probe& probe);

}  // namespace hapax::testing
