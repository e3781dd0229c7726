// This machine's time, to compare PostgreSQL's with. If the machine's clock is set ahead while the
// process runs, this does not follow. It goes on while the machine is suspended.
//
// Thread safety: any number of threads may read it.
#pragma once

#include <algorithm>
#include <chrono>

#include "sync/sleepless_clock.hpp"

namespace hapax::worker {

// `Elapsed` must run while the machine is suspended.
template <class Wall = std::chrono::system_clock, class Elapsed = sync::SleeplessClock>
class OwnTime {
 public:
  typename Wall::time_point now() const {
    const auto elapsed =
        std::chrono::duration_cast<typename Wall::duration>(Elapsed::now() - from_);
    return std::min(Wall::now(), began_ + elapsed);
  }

 private:
  const typename Wall::time_point began_{Wall::now()};
  const typename Elapsed::time_point from_{Elapsed::now()};
};

}  // namespace hapax::worker
