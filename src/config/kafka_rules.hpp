// Which of librdkafka's properties a worker may not have, and why: they would break the promise, or
// hapax sets them itself. Everything else passes; whether librdkafka knows it, it says itself.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace hapax::config {

// Why `value` is refused for `property`, and how to mend it; nothing where it may pass. The
// sentence does not hold the value. Thread safety: pure.
std::optional<std::string> kafka_refusal(const std::string& property, const std::string& value);

// Whether brokers' certificates are verified, where the transport is TLS. As librdkafka reads it.
bool verifies_brokers(const std::map<std::string, std::string>& properties);

// max.poll.interval.ms as librdkafka has it, and the least a worker gets along with: a rebalance
// takes a revoke's wait, and Kafka gives the partitions away before the end of it where this is
// too short.
inline constexpr int kDefaultMaxPollIntervalMs = 300'000;
inline constexpr int kMinMaxPollIntervalMs = 10'000;

// The number in such a property, or nothing.
std::optional<int> milliseconds_of(const std::string& value);

}  // namespace hapax::config
