// The clocks of `hapax bench`.
//
// Thread safety: settled() from any thread; the rest from one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace hapax::app {

// Messages a second, from the end of a warm-up (joining the group, preparing statements) to the
// last message.
class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // Precondition: warm_up < messages.
  RateMeter(std::size_t messages, std::size_t warm_up) : messages_(messages), warm_up_(warm_up) {}

  void settled(std::size_t count);
  std::size_t count() const { return count_; }

  // True once all are settled. Blocks: at most `timeout`.
  bool wait(std::chrono::milliseconds timeout);

  // Precondition: wait() was true.
  double per_second() const;

 private:
  const std::size_t messages_;
  const std::size_t warm_up_;
  std::atomic<std::size_t> count_{0};
  mutable std::mutex mutex_;
  std::condition_variable ended_there_;
  std::size_t measured_ = 0;  // after the warm-up
  std::optional<Clock::time_point> began_, ended_;
};

// Sends at a fixed rate, and measures from the time when a message *should* have been sent. So a
// stall counts for each message that it held up (no coordinated omission).
class LatencyMeter {
 public:
  using Clock = std::chrono::steady_clock;

  LatencyMeter(std::size_t messages, double rate);

  // From now on message n is due at n / rate.
  void begin() { began_ = Clock::now(); }
  Clock::time_point due(std::size_t n) const;

  // If message n is not a measured one, this only counts it.
  void settled(std::size_t n);
  std::size_t count() const { return count_; }

  // The times of the settled messages, the shortest first.
  std::vector<std::chrono::nanoseconds> sorted() const;

 private:
  const double rate_;
  std::atomic<Clock::time_point> began_{Clock::time_point{}};
  std::vector<std::atomic<std::int64_t>> nanoseconds_;
  std::atomic<std::size_t> count_{0};
};

// How much memory the process takes beyond what it had when this was made. Linux keeps one peak for
// each process, so there can be one MemoryMeter at a time.
class MemoryMeter {
 public:
  MemoryMeter();

  // The most bytes up to now; 0 if the system does not tell.
  std::size_t peak() const;

 private:
  std::size_t before_ = 0;
};

}  // namespace hapax::app
