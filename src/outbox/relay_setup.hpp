// The settings of a relay.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "kafka/consumer.hpp"
#include "store/session.hpp"

namespace hapax::outbox {

struct RelaySetup {
  std::string group;
  std::string name;  // shown to operators
  std::function<store::Session()> connect;
  std::function<kafka::Properties()> properties;           // the consumer's, as they stand now
  std::map<std::string, std::size_t, std::less<>> topics;  // → the largest record that each takes
  std::chrono::seconds lease{10};
  std::chrono::seconds sweep{60};                   // between two looks below the low-water marks
  std::map<std::string, std::string> letters = {};  // consumed topic → its dead letter topic
  bool transactions = false;                        // publish.transactions

  // Whether only dead letters go to the topic. No handler published them, so they wait for their
  // topic and hold nothing up.
  bool is_for_letters_alone(const std::string& topic) const {
    return !topics.contains(topic) &&
           std::ranges::any_of(letters, [&](const auto& l) { return l.second == topic; });
  }
};

}  // namespace hapax::outbox
