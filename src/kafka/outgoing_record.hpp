// A record on its way to Kafka.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hapax::kafka {

struct OutgoingRecord {
  std::string topic;
  std::optional<std::string> key, payload;  // nothing: null
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

}  // namespace hapax::kafka
