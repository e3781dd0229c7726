// Whether PostgreSQL is there, as all of a worker's threads see it: an outage is one line in the
// log, however many connections notice it.
//
// Thread safety: all of it.
#pragma once

#include <mutex>
#include <string>

#include "observe/health.hpp"
#include "observe/metrics.hpp"

namespace hapax::worker {

class PostgresState {
 public:
  PostgresState(observe::Health& health, observe::Metrics& metrics)
      : health_(health), metrics_(metrics) {}

  void came_up();
  // `what`: what could not be done; `sqlstate` may be empty; `text` as PostgreSQL or libpq said it.
  void went_down(const std::string& what, const std::string& sqlstate, const std::string& text);
  bool is_down() const {
    const std::lock_guard lock(mutex_);
    return known_ && !up_;
  }

 private:
  observe::Health& health_;
  observe::Metrics& metrics_;
  mutable std::mutex mutex_;
  bool known_ = false;  // guarded by mutex_
  bool up_ = false;     // guarded by mutex_
};

}  // namespace hapax::worker
