#include "worker/await_topics.hpp"

#include "observe/log.hpp"
#include "observe/service_manager.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTopicTimeout{5000};
constexpr milliseconds kBetweenQuestions{100};

// "" if nothing is missing.
std::string missing_topics(const AwaitedTopics& awaited) {
  std::string missing;
  for (const std::string& topic : awaited.topics)
    if (awaited.consumer.partition_count(topic, kTopicTimeout) == 0)
      missing += (missing.empty() ? "Kafka has no topic \"" : "\", \"") + topic;
  return missing.empty() ? missing : missing + "\"";
}

}  // namespace

std::optional<std::string> await_topics(const AwaitedTopics& awaited, const StopSignal& stop) {
  std::string said;
  while (stop == 0) {
    awaited.kafka_health.renew_credentials();
    std::string missing;
    try {
      missing = missing_topics(awaited);
      awaited.health.waits_for_topics(missing);
      if (missing.empty()) return std::nullopt;
    } catch (const std::exception& error) {
      (void)awaited.consumer.poll(milliseconds(0));  // serves on_client_error, which has the cause
      awaited.kafka_health.does_not_answer();
      const std::string& cause = awaited.kafka_health.last_error();
      missing = "Kafka does not answer: " + (cause.empty() ? error.what() : cause);
    }
    if (!awaited.waits) return missing;
    if (missing != said) {
      observe::log::warning("waiting_for_kafka", {{"error", missing}}, "waiting for Kafka");
      observe::service_manager::ready("waiting for Kafka: " + missing);
    }
    said = missing;
    awaited.health.poll_turned();  // a restart would not help
    (void)awaited.consumer.poll(kBetweenQuestions);
  }
  return std::nullopt;
}

}  // namespace hapax::worker
