// Nothing sleeps without a stop token.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace hapax::worker {

// Blocks: for `time`, or until a stop is requested.
inline void wait_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace hapax::worker
