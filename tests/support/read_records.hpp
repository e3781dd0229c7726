// Reads what stands in a partition, for the tests, without a consumer group.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hapax::support {

struct Incoming {
  std::int64_t offset = -1;
  std::optional<std::string> payload;
  std::optional<std::string> key;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::int64_t timestamp_ms = -1;
};

// The records of a partition from its beginning to its present end, those of committed
// transactions only. Throws: std::runtime_error in Kafka's words, or at the timeout.
// Blocks: at most `timeout`.
std::vector<Incoming> read_records(const std::string& bootstrap, const std::string& topic,
                                   std::int32_t partition,
                                   std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace hapax::support
