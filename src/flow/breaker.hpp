// Many messages in a row given up on for one cause are a broken deploy, not bad messages: the route
// halts instead of draining the topic into dead letters.
//
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "flow/outcome.hpp"
#include "sync/mutex.hpp"

namespace hapax::flow {

// What a message that was given up on counts for: its letter's reason and SQLSTATE; without one,
// the words of its error that hold no digit, so that messages may name themselves in it.
// Empty: it counts for nothing, as its handler never ran, or its letter is older than this run.
std::string cause_of(const Outcome& outcome);

class Breaker {
 public:
  // `limit`: dead letters in a row; 0: never opens.
  explicit Breaker(int limit) : limit_(limit) {}

  // What became of a message, once that is committed. One that completed begins the count again.
  void learn(const Outcome& outcome);

  // From the limit-th dead letter in a row until close(): no message of the route may run.
  bool is_open() const { return open_; }

  // The cause, for the one who asks for the halt; nothing to everybody else. A close() before that
  // takes nothing back: the halt that it opened for has not been asked for.
  std::optional<std::string> take_cause();

  // A partition of the route starts, so no halt of it stands any more.
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
