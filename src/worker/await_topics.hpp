// Before a worker joins its group, looks whether Kafka has the topics of its routes.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "worker/kafka_health.hpp"

namespace hapax::worker {

// Set by a signal handler: drain and leave.
using StopSignal = std::atomic<int>;

struct AwaitedTopics {
  const std::vector<std::string>& topics;
  bool waits;  // kafka.wait_for_topics; if false, asks Kafka once
  kafka::Consumer& consumer;
  KafkaHealth& kafka_health;
  observe::Health& health;
};

// Nothing if every topic is there, or after `stop`; else a sentence that names what is missing.
// Logs each such sentence once. Blocks: until the topics are there or `stop`; if it does not wait,
// at most 5 s for each topic. Poll thread only.
std::optional<std::string> await_topics(const AwaitedTopics& awaited, const StopSignal& stop);

}  // namespace hapax::worker
