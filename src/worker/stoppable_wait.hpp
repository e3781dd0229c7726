// Nothing sleeps without a stop token.
#pragma once

#include <chrono>
#include <condition_variable>
#include <stop_token>

#include "sync/mutex.hpp"

namespace hapax::worker {

// Blocks: for `time`, or until a stop is requested.
inline void wait_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  sync::Mutex mutex;
  std::condition_variable_any woken;
  sync::Lock lock(mutex);
  woken.wait_for(lock.waitable(), stop, time, [] { return false; });
}

}  // namespace hapax::worker
