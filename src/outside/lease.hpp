// Whether this process may call now. One lease is for all its calls.
//
// The lease ends by PostgreSQL's clock. This process counts from the time before it asked, and
// stops calling a quarter of the lease earlier. Its clock is never set, and also runs while the
// machine sleeps.
//
// Thread safety: all of it, from any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "sync/sleepless_clock.hpp"

namespace hapax::outside {

class Lease {
 public:
  using Clock = sync::SleeplessClock;

  explicit Lease(std::chrono::milliseconds duration) : duration_(duration) {}

  std::chrono::milliseconds duration() const { return duration_; }

  // PostgreSQL has granted the lease. `asked`: the time before the question.
  void granted(Clock::time_point asked) { until_ = asked + duration_ - duration_ / 4; }
  void lost() { until_ = Clock::time_point{}; }

  bool may_call(Clock::time_point now = Clock::now()) const { return now < until_.load(); }

  // When the next renewal is due. Precondition: it was granted.
  Clock::time_point renew_at() const { return until_.load() - duration_ * 5 / 12; }

 private:
  const std::chrono::milliseconds duration_;
  std::atomic<Clock::time_point> until_{Clock::time_point{}};
};

}  // namespace hapax::outside
