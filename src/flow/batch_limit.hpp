// Slows batches down if they collide: by deadlocks, serialization failures, or held keys and rows.
// First they run one at a time. If they still collide, they become smaller. Both measures end late.
//
// A deadlock costs PostgreSQL's deadlock_timeout, a second unless it is set: the time of thousands
// of messages. So each collision doubles the number of messages that must pass without one before a
// measure is loosened. That number has a bound: one transaction that is stuck for a while must not
// slow batches for days.
//
// Thread safety: none; each lane has its own.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hapax::flow {

class BatchLimit {
 public:
  static constexpr std::size_t kMost = 10000;
  static constexpr std::size_t kLeastPatience = 50'000;
  static constexpr std::size_t kMostPatience = 200'000;

  // How many messages a transaction should have.
  std::size_t value() const { return value_; }

  // Whether batches of a route should wait for each other, in all workers.
  bool one_at_a_time() const { return one_at_a_time_; }

  // A transaction of `size` messages, two or more, collided with others.
  void contended(std::size_t size) {
    if (one_at_a_time_) value_ = size / 2;
    one_at_a_time_ = true;
    patience_ = std::min(2 * patience_, kMostPatience);
    calm_ = 0;
  }

  // So many messages were settled without a collision.
  void passed(std::size_t messages) {
    calm_ += messages;
    if (calm_ < (one_at_a_time_ ? patience_ : kMostPatience)) return;
    calm_ = 0;
    if (value_ < kMost) {
      value_ = std::min(2 * value_, kMost);
    } else if (one_at_a_time_) {
      one_at_a_time_ = false;
    } else {
      patience_ = kLeastPatience;
    }
  }

 private:
  std::size_t value_ = kMost;
  bool one_at_a_time_ = false;
  std::size_t patience_ = kLeastPatience;  // messages that must pass before a measure is loosened
  std::size_t calm_ = 0;                   // messages since a measure last changed
};

}  // namespace hapax::flow
