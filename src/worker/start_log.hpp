// What people should know of a start that was agreed.
#pragma once

#include "worker/partition.hpp"
#include "worker/start.hpp"

namespace hapax::worker {

void log_beginning(const TopicPartition& id, const StartFacts& facts, const StartAt& at);

// By position: the start waits for a transaction of an earlier owner. Once for each assignment.
void log_settling(Partition& partition);

}  // namespace hapax::worker
