// The partitions that the group has assigned to this worker and that are not halted.
//
// Owned by the poll thread. Only Assignment changes the table.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>

#include "worker/partition.hpp"

namespace hapax::worker {

using Partitions = std::map<TopicPartition, std::shared_ptr<Partition>, PartitionOrder>;

// The clock of a part of the poll thread. Tests replace it.
using Now = std::function<std::chrono::steady_clock::time_point()>;

// `id`: a topic and a partition's number. Null if the start of that partition is not agreed yet,
// or if it is over.
template <class Id>
std::shared_ptr<Partition> find_running(const Partitions& partitions, const Id& id) {
  const auto found = partitions.find(id);
  if (found == partitions.end() || found->second->over() || !found->second->polling.started)
    return nullptr;
  return found->second;
}

// Whether the table has this very assignment, and it is not over.
inline bool is_current(const Partitions& partitions, const std::shared_ptr<Partition>& partition) {
  const auto found = partitions.find(partition->id());
  return found != partitions.end() && found->second == partition && !partition->over();
}

}  // namespace hapax::worker
