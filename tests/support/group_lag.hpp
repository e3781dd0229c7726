// How far a consumer group is behind, as Kafka sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hapax::support {

// The messages (and control records) between the group's committed offsets and the ends of the
// topic's partitions. A partition without a committed offset counts from 0, and at least as 1. A
// group that has settled everything has committed its offsets.
// Throws: std::runtime_error in Kafka's words. Blocks: at most 30 s.
std::int64_t group_lag(const std::string& bootstrap, const std::string& group,
                       const std::string& topic, int partitions);

// Returns when the lag is 0. Throws: std::runtime_error with the lag at the timeout.
void await_no_lag(const std::string& bootstrap, const std::string& group, const std::string& topic,
                  int partitions, std::chrono::milliseconds timeout = std::chrono::seconds(180));

}  // namespace hapax::support
