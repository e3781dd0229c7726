// A message for the tests of keys: the parts are owned here, so that a test can write literals.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/message.hpp"

namespace hapax::key {

// Valid only within the expression or scope that made it: Message is a view.
struct SampleMessage {
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  std::optional<std::string> payload = "{}";
  std::optional<std::string> record_key = std::nullopt;
  std::string topic = "payments";

  template <typename Use>
  auto with(Use use) const {
    std::vector<Header> views;
    for (const auto& [name, value] : headers) views.push_back({name, value});
    Message::Parts parts;
    parts.coordinates = {topic, 3, 42};
    parts.key = record_key;
    parts.payload = payload;
    parts.headers = views;
    return use(Message(parts));
  }
};

}  // namespace hapax::key
