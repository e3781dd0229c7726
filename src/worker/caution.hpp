// Caution: after a crash, messages run alone, so that the one that kills the process is known.
//
// Owned by the poll thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "worker/dispatcher.hpp"

namespace hapax::worker {

class Caution {
 public:
  // `lanes`: how many messages run at once. `queue`: if a checkpoint has moved by so many offsets,
  // caution ends anyway.
  Caution(Dispatcher& dispatcher, std::size_t lanes, std::size_t queue)
      : dispatcher_(dispatcher), lanes_(lanes), queue_(queue) {}

  // A partition's start is agreed. It needs caution if its last runs ended early.
  void started(const std::shared_ptr<Partition>& partition);

  // Begins caution about the partitions that need it. Call it before any of them is fetched.
  void begin();

  // Ends caution about the partitions that need it no longer.
  void end();

 private:
  bool is_needed(const Partition& partition) const;

  Dispatcher& dispatcher_;
  const std::size_t lanes_;
  const std::size_t queue_;
  std::vector<std::shared_ptr<Partition>> cautious_;  // whose last runs ended early
  std::vector<std::shared_ptr<Partition>> new_;       // of this turn
};

}  // namespace hapax::worker
