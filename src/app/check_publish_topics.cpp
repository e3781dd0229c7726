// `hapax check`: the topics that handlers publish to.
#include <algorithm>

#include "app/findings.hpp"
#include "cli/kafka_reader.hpp"
#include "kafka/topic_settings.hpp"

namespace hapax::app {
namespace {

constexpr const char* kMayPublish =
    "published records wait until they may be written; give the user of kafka.* Write on the topic";
constexpr const char* kNeedsLimit =
    "give the user of kafka.* DescribeConfigs on the topic: without it a worker takes 1 MB for the "
    "largest record";

void check_largest(const config::Config& config, const KafkaReader& reader,
                   const std::string& topic, Findings& findings) {
  const std::string what = "settings of " + topic;
  kafka::TopicSettings settings;
  try {
    settings = reader.consumer().topic_settings(topic, kafka::kSettingsTimeout);
  } catch (const std::exception& error) {
    findings.warn(what, std::string("cannot tell: ") + error.what(), kNeedsLimit);
    return;
  }
  if (!settings.max_message_bytes) {
    findings.warn(what, "cannot tell: the broker names no max.message.bytes", kNeedsLimit);
    return;
  }
  const bool compacts = settings.cleanup_policy.find("compact") != std::string::npos;
  const std::string found = "records of up to " + std::to_string(*settings.max_message_bytes) +
                            " bytes, cleanup.policy " + settings.cleanup_policy;
  if (compacts)
    findings.warn(what, found,
                  "give each published record a key: Kafka refuses one without a key here, and it "
                  "halts; compaction also drops older records of a key");
  else
    findings.ok(what, found);
  findings.attempt("writing to " + topic, kMayPublish, [&] {
    check_may_write(config, topic, *settings.max_message_bytes, kMayPublish, findings);
  });
}

}  // namespace

void check_publish_topics(const config::Config& config, const KafkaReader& reader,
                          Findings& findings, const config::Gate* gate) {
  for (const std::string& topic : config.publish.topics) {
    const std::string what =
        "topic " + topic +
        (gate == nullptr ? " of publish.topics" : ", which the gate publishes to");
    findings.attempt(what, "may the user of kafka.* describe it?", [&] {
      const int partitions = reader.consumer().partition_count(topic, kKafkaTimeout);
      findings.judge(
          partitions > 0, what,
          partitions > 0 ? std::to_string(partitions) + " partitions" : "does not exist",
          "create it, or take it out of the configuration; hapax waits for it at its start");
      if (partitions == 0) return;
      if (std::ranges::count(config.routes, topic, &config::Route::topic) > 0)
        findings.warn(what, "a route of this group consumes it, too",
                      "right for a chain of steps; a handler that publishes to its own topic for "
                      "each message never ends");
      check_largest(config, reader, topic, findings);
      if (config.publish.transactions) check_transactions(config, topic, findings);
    });
  }
}

}  // namespace hapax::app
