// Logs what an operator should know of an agreed start.
#pragma once

#include "worker/partition.hpp"
#include "worker/start.hpp"

namespace hapax::worker {

void log_beginning(const TopicPartition& id, const StartFacts& facts, const StartAt& at);

// By position: whether the start waits for a transaction of an earlier owner. If so, logs that once
// for each assignment.
bool is_settling(Partition& partition, const store::Taken& taken);

}  // namespace hapax::worker
