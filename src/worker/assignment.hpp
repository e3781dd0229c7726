// Which partitions this worker has: assigned, halted, and taken again after something went wrong.
//
// A partition that is taken again is a new object, with a new start. What still runs of the old one
// settles into nothing.
//
// Owned by the poll thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flow/route.hpp"
#include "observe/health.hpp"
#include "observe/metrics.hpp"
#include "worker/dispatcher.hpp"
#include "worker/fetches.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/notices.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class Assignment {
 public:
  // Changes `partitions`. All of it outlives this.
  Assignment(const std::vector<flow::Route>& routes, Partitions& partitions, Dispatcher& dispatcher,
             Fetches& fetches, KeeperInterface& keeper, observe::Health& health,
             observe::Metrics& metrics);

  // The group has assigned these: agrees a start for each. Returns those whose topic no route has.
  std::vector<TopicPartition> assigned(const std::vector<TopicPartition>& ids);

  // Drops what is queued of these, and returns those that are not halted. What runs goes on.
  std::vector<std::shared_ptr<Partition>> drop(const std::vector<TopicPartition>& ids);

  // The group has taken this one away.
  void revoked(const TopicPartition& id);

  // The worker has left the group.
  void clear();

  // Stops the partition, or all of its route, until HaltEnded.
  void halt(const HaltWanted& wanted);
  void halt_ended(const HaltEnded& ended);
  const std::map<TopicPartition, store::Halt>& halted() const { return halted_; }

  // Its checkpoint could not be written: starts it again from its row.
  void fenced(const Fenced& fenced);

  // Stops the partition and agrees a new start, not before `after` has passed, nor while messages
  // of it run: behind a skip they do not come again, and later ones of their keys would overtake
  // them. The log must hold what was read of it.
  void start_again(std::shared_ptr<Partition> partition, std::chrono::milliseconds after);

  // Begins the starts for which nothing of their partition runs any more.
  void turn();

 private:
  bool runs(const std::shared_ptr<Partition>& partition) const;
  std::shared_ptr<Partition> make(const TopicPartition& id) const;
  void stop(const std::shared_ptr<Partition>& partition);
  void take(const TopicPartition& id, std::chrono::milliseconds after, std::int64_t read_below);
  void remember_last(const Partition& partition);

  const std::vector<flow::Route>& routes_;
  Partitions& partitions_;
  Dispatcher& dispatcher_;
  Fetches& fetches_;
  KeeperInterface& keeper_;
  observe::Health& health_;
  observe::Metrics& metrics_;

  std::map<std::string, std::size_t> route_index_;  // topic → index in routes_
  std::map<TopicPartition, store::Halt> halted_;
  struct Waiting {
    std::shared_ptr<Partition> partition;
    std::chrono::milliseconds after;
  };
  std::vector<Waiting> waiting_;                    // starts
  std::vector<std::shared_ptr<Partition>> ending_;  // stopped, and messages of theirs run
  // Of partitions that were ours.
  std::map<TopicPartition, ReadRecord> last_read_;
  std::map<TopicPartition, store::WalPosition> seen_wal_;
};

}  // namespace hapax::worker
