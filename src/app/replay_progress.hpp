// Waits for replays that workers run, and shows their progress.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "cli/output.hpp"
#include "store/operator/dead_letter_orders.hpp"

namespace hapax::app {

struct ReplayOutcomes {
  std::map<std::string, std::size_t> counts;  // completed, refused, failed, cancelled
  Json not_completed = Json::array();         // the first kMaxTold: dead_letter, outcome, detail
  std::size_t ended = 0;

  bool all_completed() const;
  // "2 completed, 1 refused, 0 failed, 0 cancelled"
  std::string text() const;
};
inline constexpr std::size_t kMaxTold = 100;

// Returns when all have ended. On a terminal, a line shows the progress. If no worker takes a
// replay for 15 s, it prints that once to stderr. `longest_run`: worker.handler_timeout.
// Throws: DatabaseError; the replays stay wanted then. Blocks: until a worker has ended them all.
ReplayOutcomes await_replays(store::Session& session, store::LetterIds replays,
                             std::chrono::seconds longest_run, bool show);

}  // namespace hapax::app
