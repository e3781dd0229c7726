// The coordinates by which PostgreSQL remembers a message. They hold the group, because another
// group's dead letter is not a redelivery. They hold the generation, because a re-created topic
// starts at 0 again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hapax/message.hpp"
#include "hapax/rows.hpp"

namespace hapax::store {

struct Source {
  std::string group;
  std::string topic;
  std::int32_t generation = 1;
  std::int32_t partition = 0;
  std::int64_t offset = 0;

  // As the first five parameters of most statements.
  std::vector<Parameter> parameters() const {
    return {group, topic, generation, partition, offset};
  }
};

// Milliseconds since 1970-01-01 UTC, as tables and reports keep it.
inline std::optional<std::int64_t> timestamp_ms(const Message& message) {
  const auto timestamp = message.timestamp();
  return timestamp ? std::optional(timestamp->time_since_epoch().count()) : std::nullopt;
}

}  // namespace hapax::store
