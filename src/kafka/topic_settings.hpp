// How long Kafka keeps a topic's messages and the offsets of groups, by its admin API.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "kafka/consumer.hpp"

namespace hapax::kafka {

// How long the answer may take; the mock cluster never gives one.
inline constexpr std::chrono::milliseconds kSettingsTimeout{3000};

struct TopicSettings {
  std::optional<std::int64_t> retention_ms;  // -1: for ever
  std::string cleanup_policy;                // "delete", "compact" or both
  std::optional<std::int64_t> max_message_bytes;
};

// Asks with a client of its own. The mock cluster has no admin API, and a real one may refuse a
// user who may consume.
// Throws: std::runtime_error with the reason. Blocks: at most `timeout`, and the client's end.
TopicSettings read_topic_settings(const Properties& properties, const std::string& topic,
                                  std::chrono::milliseconds timeout);

// How long the offsets of a group without members are kept (offsets.retention.minutes), as one of
// the brokers has it; nothing if it does not tell.
// Throws: std::runtime_error with the reason. Blocks: at most twice `timeout`, and the client's
// end.
std::optional<std::chrono::minutes> read_offsets_retention(const Properties& properties,
                                                           std::chrono::milliseconds timeout);

}  // namespace hapax::kafka
