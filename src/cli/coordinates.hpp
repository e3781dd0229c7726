// TOPIC, TOPIC/PARTITION or TOPIC/PARTITION/OFFSET, as operators type them and hapax prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::app {

struct Place {
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<std::int64_t> offset;

  bool operator==(const Place&) const = default;
};

// Nothing if it is none of the three. Kafka's topic names hold no slash. Thread safety: pure.
std::optional<Place> parse_place(std::string_view text);

}  // namespace hapax::app
