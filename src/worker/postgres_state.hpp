// Whether PostgreSQL is there, as all of a worker's threads see it: an outage is one line in the
// log, however many connections notice it.
//
// In some outages PostgreSQL answers: a full disk refuses writes, but connections and other work go
// on. Such an outage is over only once nothing was refused for a while, because one statement that
// succeeds tells nothing about the others.
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
  // `quiet`: so long nothing was refused. More than the time between two tries of anything.
  PostgresState(observe::Health& health, observe::Metrics& metrics, std::chrono::milliseconds quiet)
      : health_(health), metrics_(metrics), quiet_(quiet) {}

  // A new connection works.
  void came_up();
  // `what`: what could not be done; `sqlstate` may be empty; `text`: of PostgreSQL or libpq.
  void went_down(const std::string& what, const std::string& sqlstate, const std::string& text);
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
  std::chrono::steady_clock::time_point up_not_before_ HAPAX_GUARDED_BY(mutex_){};
};

}  // namespace hapax::worker
