// Many messages in a row given up on for one cause are a broken deploy, not bad messages: the route
// halts instead of draining the topic into dead letters.
//
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

namespace hapax::worker {

class Breaker {
 public:
  // `limit`: dead letters in a row; 0: never breaks.
  explicit Breaker(int limit) : limit_(limit) {}

  void completed() {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    count_ = 0;
  }

  // True when this one is the limit-th in a row for one cause; the count then starts again.
  bool gave_up(const std::string& cause) {
    const std::lock_guard lock(mutex_);
    count_ = cause == cause_ ? count_ + 1 : 1;
    cause_ = cause;
    if (limit_ == 0 || count_ < limit_) return false;
    count_ = 0;
    return true;
  }

 private:
  const int limit_;
  std::mutex mutex_;
  std::string cause_;          // guarded by mutex_
  std::atomic<int> count_{0};  // written under mutex_
};

}  // namespace hapax::worker
