// How many messages a transaction should have: halved where they ran into others (deadlocks,
// serialization failures, held keys), grown back slowly.
//
// A deadlock costs PostgreSQL's deadlock_timeout, a second unless it is set: the time of thousands of
// messages. So each one doubles how many must pass in peace before more are tried.
//
// Thread safety: none; each lane has its own.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hapax::flow {

class BatchLimit {
 public:
  static constexpr std::size_t kMost = 10000;
  static constexpr std::size_t kLeastPatience = 1000;
  static constexpr std::size_t kMostPatience = 1'000'000;

  std::size_t value() const { return value_; }

  // A transaction of `size` messages, two or more, ran into others.
  void contended(std::size_t size) {
    value_ = size / 2;
    patience_ = std::min(2 * patience_, kMostPatience);
    calm_ = 0;
  }

  // So many messages were settled without.
  void passed(std::size_t messages) {
    if (value_ == kMost) return;
    calm_ += messages;
    if (calm_ < patience_) return;
    calm_ = 0;
    value_ = std::min(2 * value_, kMost);
    if (value_ == kMost) patience_ = kLeastPatience;
  }

 private:
  std::size_t value_ = kMost;
  std::size_t patience_ = kLeastPatience;  // messages in peace before it grows
  std::size_t calm_ = 0;                   // messages since it changed
};

}  // namespace hapax::flow
