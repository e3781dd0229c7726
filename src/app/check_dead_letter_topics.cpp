// `hapax check`: the topics that dead letters are published to.
#include <set>

#include "app/findings.hpp"
#include "cli/kafka_reader.hpp"
#include "kafka/topic_settings.hpp"
#include "kafka/try_record.hpp"

namespace hapax::app {
namespace {

constexpr std::int64_t kLargestProbe = std::int64_t{16} << 20;

constexpr const char* kMayWrite =
    "a dead letter waits until it may be written; let the user of kafka.* write to the topic";

void check_settings(const config::Config& config, const KafkaReader& reader,
                    const config::Route& route, Findings& findings) {
  const std::string& topic = route.dead_letter_topic;
  const std::string what = "settings of " + topic;
  kafka::TopicSettings source, dead;
  try {
    source = reader.consumer().topic_settings(route.topic, kafka::kSettingsTimeout);
    dead = reader.consumer().topic_settings(topic, kafka::kSettingsTimeout);
  } catch (const std::exception& error) {
    findings.warn(what, std::string("cannot tell: ") + error.what(), kMayWrite);
    return;
  }
  findings.judge(
      dead.cleanup_policy == "delete", what, "cleanup.policy " + dead.cleanup_policy,
      "set it to delete: compaction drops dead letters, and refuses those without a key");
  if (!dead.max_message_bytes) return;
  if (source.max_message_bytes && *dead.max_message_bytes <= *source.max_message_bytes)
    findings.warn(what,
                  "max.message.bytes " + std::to_string(*dead.max_message_bytes) + ", " +
                      route.topic + " has " + std::to_string(*source.max_message_bytes),
                  "the largest are published without their payload; raise it by 16384 for what is "
                  "added in headers");
  findings.attempt("writing to " + topic, kMayWrite, [&] {
    check_may_write(config, topic, *dead.max_message_bytes, kMayWrite, findings);
  });
}

}  // namespace

// A record larger than the topic takes is refused, but only once the broker has agreed that this
// user may write there. It has a key, because a compacted topic refuses any other before that.
void check_may_write(const config::Config& config, const std::string& topic, std::int64_t limit,
                     const char* fix, Findings& findings) {
  const std::string what = "writing to " + topic;
  if (limit > kLargestProbe) {
    findings.warn(what, "not tried: it takes records of " + std::to_string(limit) + " bytes", fix);
    return;
  }
  const std::string too_much(static_cast<std::size_t>(limit) + 1024, '\0');
  const kafka::TriedRecord tried = kafka::try_record(
      config.kafka.properties,
      {.topic = topic, .key = "hapax check", .payload = too_much, .headers = {}}, kKafkaTimeout);
  using Result = kafka::TriedRecord::Result;
  findings.judge(tried.result == Result::too_large, what,
                 tried.result == Result::too_large   ? "allowed"
                 : tried.result == Result::delivered ? "the topic took a record that is too large"
                                                     : tried.error,
                 fix);
}

void check_dead_letter_topics(const config::Config& config, const KafkaReader& reader,
                              Findings& findings) {
  std::set<std::string> seen;
  for (const config::Route& route : config.routes) {
    const std::string& topic = route.dead_letter_topic;
    if (topic.empty() || !seen.insert(topic).second) continue;
    const std::string what = "dead letter topic " + topic;
    findings.attempt(what, "may the user of kafka.* describe it?", [&] {
      const int partitions = reader.consumer().partition_count(topic, kKafkaTimeout);
      findings.judge(
          partitions > 0, what,
          partitions > 0 ? std::to_string(partitions) + " partitions" : "does not exist",
          "create it; dead letters of " + route.topic + " wait in PostgreSQL until it is there");
      if (partitions == 0) return;
      check_settings(config, reader, route, findings);
      if (config.publish.transactions) check_transactions(config, topic, findings);
    });
  }
}

}  // namespace hapax::app
