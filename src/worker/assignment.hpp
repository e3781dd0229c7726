// Which partitions this worker has: assigned, halted, and taken again after something went wrong.
//
// If a partition is taken again, it is a new object with a new start. If messages of the old object
// still run, their outcomes change nothing in the new one.
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
  // Changes `partitions`. All references outlive this.
  Assignment(const std::vector<flow::Route>& routes, Partitions& partitions, Dispatcher& dispatcher,
             Fetches& fetches, KeeperInterface& keeper, observe::Health& health,
             observe::Metrics& metrics);

  // The group has assigned these. Asks for a start of each. Returns those whose topic has no route.
  std::vector<TopicPartition> assigned(const std::vector<TopicPartition>& ids);

  // Drops the queued messages of these partitions, and returns those that are not halted. Messages
  // that run go on.
  std::vector<std::shared_ptr<Partition>> drop(const std::vector<TopicPartition>& ids);

  // The group has taken this one away.
  void revoked(const TopicPartition& id);

  // The worker has left the group.
  void clear();

  // Stops the partition, or all of its route, until HaltEnded.
  void halt(const HaltWanted& wanted);
  void halt_ended(const HaltEnded& ended);
  const std::map<TopicPartition, store::Halt>& halted() const { return halted_; }

  // The partition's checkpoint could not be written, so it starts again from its row.
  void fenced(const Fenced& fenced);

  // Stops the partition and asks for a new start once `after` has passed. It also waits until no
  // message of the partition runs. Otherwise, if an operator skips such messages, they do not come
  // again, and later messages of their keys would overtake them. The new start checks that the log
  // still holds what was read.
  void start_again(std::shared_ptr<Partition> partition, std::chrono::milliseconds after);

  // Begins the starts of partitions of which no message runs any more.
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
  std::vector<std::shared_ptr<Partition>> ending_;  // stopped, but some of their messages still run
  // Of partitions that were ours.
  std::map<TopicPartition, ReadRecord> last_read_;
  std::map<TopicPartition, SeenWal> seen_wal_;
};

}  // namespace hapax::worker
