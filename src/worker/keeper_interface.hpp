// What the parts of the poll thread ask of the keeper. Tests replace it by one in memory.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "store/worker/checkpoints.hpp"
#include "worker/partition.hpp"

namespace hapax::worker {

class KeeperInterface {
 public:
  // Whether a look that began after `since` found the group's offsets of all partitions unchanged.
  // If not, it asks for such a look, which takes milliseconds if Kafka answers. A look holds for a
  // second. Any thread.
  virtual bool logs_looked_at(std::chrono::steady_clock::time_point since) = 0;

  // Of these started partitions, returns those whose topic was made again, as far as Kafka can
  // tell. Any thread. Throws: std::runtime_error if Kafka does not answer. Blocks: at most
  // `timeout` for each topic, and once more.
  virtual std::vector<std::shared_ptr<Partition>> with_another_log(
      const std::vector<std::shared_ptr<Partition>>& partitions,
      std::chrono::milliseconds timeout) const = 0;

  // Agrees a start for each partition, and posts Started or HaltWanted. Tries until it works or the
  // partition is over. It begins when `after` has passed.
  virtual void acquire(const std::vector<std::shared_ptr<Partition>>& partitions,
                       std::chrono::milliseconds after) = 0;

  // Records a halt as soon as PostgreSQL answers. Posts HaltEnded when an operator ends it.
  virtual void halted(const store::Halt& halt, bool recorded) = 0;

  // Which database this is; empty before the first start was agreed.
  virtual std::string store_id() const = 0;
  virtual std::string cluster_id() const = 0;

  // The group has assigned partitions. Posts NobodyHas if a static member came back to a group that
  // does not know of new partitions. It looks once in a process.
  virtual void joined() = 0;

  // Writes the last checkpoints of these partitions, and the halts that are not recorded yet. Marks
  // a clean leave of those that are drained, and forgets them all. If PostgreSQL does not take a
  // checkpoint, the next owner repeats its messages as duplicates. False if PostgreSQL was away
  // before, or does not answer in time. Then the keeper's end may wait for it without bound.
  // Blocks: at most `timeout`, even if PostgreSQL does not answer. One thread at a time.
  // `idle`: no lane works on any of them. Only then is the leave clean.
  virtual bool release(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle,
                       std::chrono::milliseconds timeout) = 0;

 protected:
  ~KeeperInterface() = default;
};

}  // namespace hapax::worker
