// Whether PostgreSQL answers, for all threads of a worker. An outage is one line in the log, even
// if many connections notice it.
//
// In some outages PostgreSQL answers: a full disk refuses writes, but connections and other work go
// on. Such an outage is over only if nothing was refused for a while. One statement that succeeds
// tells nothing about the others.
//
// Thread safety: all of it.
#pragma once

#include <chrono>
#include <string>

#include "observe/health.hpp"
#include "observe/metrics.hpp"
#include "sync/mutex.hpp"

namespace hapax::worker {

class PostgresState {
 public:
  using Clock = std::chrono::steady_clock;

  // `quiet`: the outage ends if nothing was refused for so long. It must be longer than the time
  // between two tries of anything.
  PostgresState(observe::Health& health, observe::Metrics& metrics, std::chrono::milliseconds quiet)
      : health_(health), metrics_(metrics), quiet_(quiet) {}

  // A new connection works.
  void came_up();
  // `what`: what could not be done. `sqlstate` may be empty. `text`: of PostgreSQL or libpq.
  // `tried_at`: when a try to connect began. If another one has succeeded since, this failure does
  // not count.
  void went_down(const std::string& what, const std::string& sqlstate, const std::string& text,
                 Clock::time_point tried_at = Clock::time_point::max());
  bool is_down() const {
    const sync::Lock lock(mutex_);
    return known_ && !up_;
  }

 private:
  observe::Health& health_;
  observe::Metrics& metrics_;
  const std::chrono::milliseconds quiet_;
  mutable sync::Mutex mutex_;
  bool known_ HAPAX_GUARDED_BY(mutex_) = false;
  bool up_ HAPAX_GUARDED_BY(mutex_) = false;
  Clock::time_point up_not_before_ HAPAX_GUARDED_BY(mutex_){};
  Clock::time_point connected_at_ HAPAX_GUARDED_BY(mutex_){};
};

}  // namespace hapax::worker
