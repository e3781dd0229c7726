#pragma once

#include <time.h>

#include <chrono>

namespace hapax::sync {

// Unlike std::chrono::steady_clock, it also runs while the machine is suspended.
struct SleeplessClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SleeplessClock>;
  static constexpr bool is_steady = true;

  static time_point now() {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

}  // namespace hapax::sync
