// Which of librdkafka's properties a worker may not have, and why: they would break the promise, or
// hapax sets them itself. Everything else passes; librdkafka itself reports unknown ones.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace hapax::config {

// Why `value` is refused for `property`, and how to fix it; nothing if it may pass. The
// sentence does not hold the value. Thread safety: pure.
std::optional<std::string> kafka_refusal(const std::string& property, const std::string& value);

// Whether brokers' certificates are verified, if the transport is TLS. As librdkafka reads it.
bool verifies_brokers(const std::map<std::string, std::string>& properties);

// librdkafka's default of max.poll.interval.ms, and the least that a worker needs. A rebalance
// waits for the revoke. If the interval is too short, Kafka gives the partitions away before that
// ends.
inline constexpr int kDefaultMaxPollIntervalMs = 300'000;
inline constexpr int kMinMaxPollIntervalMs = 10'000;

// The number in such a property, or nothing.
std::optional<int> milliseconds_of(const std::string& value);

}  // namespace hapax::config
