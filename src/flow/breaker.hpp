// Halts a route if many messages in a row become dead letters for one cause. That is a broken
// deploy, not bad messages. Without the halt the whole topic would become dead letters.
//
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "flow/outcome.hpp"
#include "sync/mutex.hpp"

namespace hapax::flow {

// The cause that a dead letter counts for: its reason and its SQLSTATE. Without a SQLSTATE it is
// the reason and the error's words that hold no digit, because an error may name its message. Empty
// if the letter does not count: its handler never ran, or the letter is older than this run.
std::string cause_of(const Outcome& outcome);

class Breaker {
 public:
  // `limit`: dead letters in a row; 0: never opens.
  explicit Breaker(int limit) : limit_(limit) {}

  // Call it when the outcome of a message is committed. A completed message resets the count.
  void learn(const Outcome& outcome);

  // From the limit-th dead letter in a row until close(). Meanwhile no message of the route may
  // run.
  bool is_open() const { return open_; }

  // Returns the cause to the first caller, who then asks for the halt, and nothing to later ones. A
  // close() in between does not withdraw the cause, because the halt has not been asked for yet.
  std::optional<std::string> take_cause();

  // Call it when a partition of the route starts: then the route is no longer halted.
  void close();

 private:
  const int limit_;
  sync::Mutex mutex_;
  std::string cause_ HAPAX_GUARDED_BY(mutex_);
  std::optional<std::string> untold_ HAPAX_GUARDED_BY(mutex_);
  // Written under mutex_.
  std::atomic<bool> has_untold_{false};
  std::atomic<int> count_{0};
  std::atomic<bool> open_{false};
};

}  // namespace hapax::flow
