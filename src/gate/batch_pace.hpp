// Decides how many requests of a route one lane takes into a batch.
//
// If batches collide with others (locks, deadlocks, statements that took long), the next are half
// as large. They grow again later, and the more often they collided, the later. If a request has to
// leave a batch, the next ones have one request less.
//
// Thread safety: none; each lane has its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace hapax::gate {

class BatchPace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::size_t kLeastPatience = 64;
  static constexpr std::size_t kMostPatience = 65'536;
  // What the handlers of a batch should take at most, so that the first answer comes soon.
  static constexpr std::chrono::milliseconds kHandlers{20};

  explicit BatchPace(std::size_t most) : most_(most), bound_(most), size_(most) {}

  std::size_t value() const { return std::max<std::size_t>(1, std::min({bound_, size_, fit_})); }

  // A batch of so many was committed, or one alone; their handlers took `own` time.
  void passed(std::size_t requests, Duration own) {
    const auto each = own / static_cast<Duration::rep>(requests);
    mean_ += (each - mean_) / 8;
    fit_ = mean_ > Duration::zero() ? static_cast<std::size_t>(kHandlers / mean_) : most_;
    calm_ += requests;
    if (requests > 1) size_ = std::min(size_ + 1, most_);
    if (calm_ < patience_) return;
    calm_ = 0;
    if (bound_ == most_ && size_ > 1) patience_ = std::max(patience_ / 2, kLeastPatience);
    bound_ = std::min(2 * bound_, most_);
    size_ = std::max(size_, std::min<std::size_t>(2, most_));
  }

  // A request had to leave its batch.
  void one_left() { size_ = std::max<std::size_t>(1, size_ - 1); }

  // A batch collided with others.
  void contended() {
    bound_ = std::max<std::size_t>(1, value() / 2);
    patience_ = std::min(2 * patience_, kMostPatience);
    calm_ = 0;
  }

  // Its handler does what only a transaction of one request may.
  void cannot_share() {
    bound_ = 1;
    patience_ = kMostPatience;
    calm_ = 0;
  }

 private:
  std::size_t most_;
  std::size_t bound_;                      // by contention
  std::size_t size_;                       // by requests that left
  std::size_t fit_ = most_;                // by the handler's time
  Duration mean_{};                        // of a handler
  std::size_t patience_ = kLeastPatience;  // requests without a collision before a bound grows
  std::size_t calm_ = 0;                   // requests since a bound last changed
};

}  // namespace hapax::gate
