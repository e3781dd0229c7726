// Makes the stream for the records of a topic, with the producer's limits.
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
// The relay reads the next portion while Kafka gets the one before. That is up to six times as
// fast.
inline constexpr std::size_t kPortionRows = kMostRows / 2;

struct StreamSetup {
  std::string topic, group;
  std::function<kafka::Properties()> properties;
  std::optional<std::size_t> largest;  // record that the topic takes, if that is known
  bool letters_wait = false;
  bool transactions = false;
  std::optional<store::OpenBatch> open = {};  // settled before anything is sent
};
// `endings` and `cluster` outlive it.
std::unique_ptr<Stream> make_stream(const StreamSetup& setup, Endings& endings, Cluster& cluster);

}  // namespace hapax::outbox
