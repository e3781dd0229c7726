// The partitions that this worker holds. Their start is agreed, this worker has not released them,
// and no other has taken them.
//
// Thread safety: all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "store/worker/retention.hpp"
#include "sync/mutex.hpp"
#include "worker/partition.hpp"

namespace hapax::worker {

class HeldPartitions {
 public:
  using List = std::vector<std::shared_ptr<Partition>>;

  // Replaces an older assignment of the same partition, if there is one.
  void add(const std::shared_ptr<Partition>& partition) {
    const sync::Lock lock(mutex_);
    held_[partition->id()] = partition;
  }

  // Whether it holds this very assignment.
  bool has(const std::shared_ptr<Partition>& partition) const {
    const sync::Lock lock(mutex_);
    const auto found = held_.find(partition->id());
    return found != held_.end() && found->second == partition;
  }

  // False if it does not hold this very assignment.
  bool remove(const std::shared_ptr<Partition>& partition) {
    const sync::Lock lock(mutex_);
    const auto found = held_.find(partition->id());
    if (found == held_.end() || found->second != partition) return false;
    held_.erase(found);
    return true;
  }

  void remove_if_over(const TopicPartition& id) {
    const sync::Lock lock(mutex_);
    const auto found = held_.find(id);
    if (found != held_.end() && found->second->over()) held_.erase(found);
  }

  List all() const {
    const sync::Lock lock(mutex_);
    List partitions;
    for (const auto& [id, partition] : held_) partitions.push_back(partition);
    return partitions;
  }

  store::HeldLogs logs() const {
    store::HeldLogs logs;
    for (const auto& partition : all())
      logs[partition->id()] = {partition->beginning().epoch, partition->checkpointed()};
    return logs;
  }

 private:
  mutable sync::Mutex mutex_;
  std::map<TopicPartition, std::shared_ptr<Partition>> held_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::worker
