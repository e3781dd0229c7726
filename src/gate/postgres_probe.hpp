// Asks all the time whether PostgreSQL still answers.
//
// PostgreSQL may keep its connections and answer nothing: its storage hangs, its machine is frozen,
// or a synchronous standby is gone. No time-out of PostgreSQL ends that, and lanes that wait cannot
// tell it from a slow statement. So the probe commits the smallest write, which is never slow by
// itself.
//
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "store/session.hpp"

namespace hapax::gate {

class PostgresProbe {
 public:
  explicit PostgresProbe(std::function<store::Session()> connect);

  // Whether PostgreSQL has owed an answer for 10 s. With the time between two questions, that is
  // seen 15 s after the last answer at the latest.
  bool is_silent() const;

 private:
  using Clock = std::chrono::steady_clock;

  void ask();

  const std::function<store::Session()> connect_;
  std::optional<store::Session> session_;                               // the thread's only
  std::atomic<Clock::time_point> asked_at_ = Clock::time_point::max();  // max: all is answered
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::gate
