// Which way the records of a topic go, and the producer's limits.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kafka/consumer.hpp"
#include "outbox/endings.hpp"
#include "outbox/stream.hpp"

namespace hapax::outbox {

inline constexpr std::size_t kMostRows = 5000;  // of a topic, in hand
// The next portion is read while Kafka gets the one before: up to six times as fast.
inline constexpr std::size_t kPortionRows = kMostRows / 2;

struct StreamSetup {
  std::string topic, group;
  std::function<kafka::Properties()> properties;
  std::optional<std::size_t> largest;  // record that the topic takes, if that is known
  bool letters_wait = false;
  bool transactions = false;
  std::optional<store::OpenBatch> open = {};  // settled in any case before anything is sent
};
// `endings` outlives it.
std::unique_ptr<Stream> make_stream(const StreamSetup& setup, Endings& endings);

}  // namespace hapax::outbox
