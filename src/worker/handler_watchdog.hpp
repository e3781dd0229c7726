// Ends the process if a handler does not come back.
//
// Such a handler holds its key, its lane and its order key for ever. The watchdog records the
// attempt and ends the process. PostgreSQL rolls back, and another process runs the message again.
//
// Only the handler's own time counts, and no time in which PostgreSQL does not answer.
//
// Owned by the poll thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "store/session.hpp"
#include "worker/lane.hpp"
#include "worker/replays.hpp"

namespace hapax::worker {

class HandlerWatchdog {
 public:
  // `timeout`: worker.handler_timeout.
  HandlerWatchdog(std::chrono::milliseconds timeout, std::function<store::Session()> connect,
                  const PostgresState& postgres)
      : timeout_(timeout), connect_(std::move(connect)), postgres_(postgres) {}

  // Looks at running handlers. `silence`: how long PostgreSQL has not answered the keeper.
  // Blocks: 5 s, if a handler ran too long.
  void look(const std::vector<std::unique_ptr<Lane>>& lanes, const Replays& replays,
            Clock::duration silence);

  // Whether a handler ran too long, and PostgreSQL answers: the process must end.
  bool hangs() const { return hangs_; }

 private:
  bool is_overdue(const std::optional<Lane::Running>& running) const;
  void give_up(const Lane::Running& running);
  bool postgres_answers(std::function<void(store::Session&)> question);

  const std::chrono::milliseconds timeout_;
  const std::function<store::Session()> connect_;
  const PostgresState& postgres_;

  bool hangs_ = false;
  Clock::time_point watched_from_{};  // earlier time of a handler does not count
};

}  // namespace hapax::worker
