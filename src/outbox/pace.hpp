// Decides how many records a transaction gets, and how long it may take. If one fails, the next is
// smaller, and then longer. Pure.
#pragma once

#include <chrono>
#include <cstddef>

namespace hapax::outbox {

class Pace {
 public:
  struct Limits {
    std::size_t most = 2500;  // records
    // Kafka hides later records behind an open transaction. So it is longer than `shortest` only
    // for a record that needs more time.
    std::chrono::milliseconds shortest = std::chrono::seconds(10);
    std::chrono::milliseconds longest = std::chrono::minutes(5);
  };
  explicit Pace(const Limits& limits)
      : limits_(limits), most_(limits.most), timeout_(limits.shortest) {}

  std::size_t most() const { return most_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // A transaction was committed in this time.
  void sent(std::chrono::milliseconds time);
  // A transaction with so many records was not committed.
  void smaller(std::size_t records);
  // A transaction with one large record took too long. False: a longer one is not allowed.
  bool longer();
  // Kafka does not allow such a long transaction. False: it does not allow the shortest either.
  bool shorter();

 private:
  Limits limits_;
  std::size_t most_;
  std::chrono::milliseconds timeout_;
};

}  // namespace hapax::outbox
