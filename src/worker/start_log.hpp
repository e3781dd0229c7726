// What people should know of a start that was agreed.
#pragma once

#include "worker/partition.hpp"
#include "worker/start.hpp"

namespace hapax::worker {

void log_beginning(const TopicPartition& id, const StartFacts& facts, const StartAt& at);

// By position: whether the start waits for a transaction of an earlier owner. Then it is told, once
// for each assignment.
bool is_settling(Partition& partition, const store::Taken& taken);

}  // namespace hapax::worker
