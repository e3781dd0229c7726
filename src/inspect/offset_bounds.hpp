// The ends of a range of messages in several partitions, as `--from` and `--to` give them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bound.hpp"
#include "kafka/consumer.hpp"

namespace hapax::app {

using OffsetBounds = std::map<kafka::TopicPartition, std::int64_t>;

// An offset, a time, or how long before `now_ms`, which is a time, too.
// Throws: Stop(kUsage) naming `option`.
Bound bound_of(const char* option, const std::string& text, std::int64_t now_ms);

// Throws: Stop(kUsage) if nothing can lie in the range, or an end is none of those. "": no end.
void expect_a_range(const std::string& from, const std::string& to, std::int64_t now_ms);

// `text`: an offset, a time, or how long before `now_ms`; nothing if it is empty. Leaves out
// partitions that Kafka does not tell.
// Throws: Stop(kUsage) naming `option`, std::runtime_error in Kafka's words. Blocks: for Kafka.
std::optional<OffsetBounds> offset_bounds(const kafka::Consumer& consumer, const char* option,
                                          const std::string& text, std::int64_t now_ms,
                                          const std::vector<kafka::TopicPartition>& partitions);

}  // namespace hapax::app
