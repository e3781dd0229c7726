// `hapax check`: whether records of a topic may go in Kafka's transactions.
#include "app/findings.hpp"
#include "cli/store_access.hpp"
#include "kafka/topic_settings.hpp"
#include "kafka/transactional_producer.hpp"

namespace hapax::app {
namespace {

constexpr const char* kMayTransact =
    "records wait until the relay may use transactions; give the user of kafka.* Write and "
    "Describe on the transactional ids, and Read on the groups, that begin with hapax-outbox/ and "
    "the group, and Read on the topic";

constexpr std::chrono::minutes kShortestRetention = std::chrono::hours(24);

}  // namespace

void check_offsets_retention(const config::Config& config, Findings& findings) {
  std::optional<std::chrono::minutes> kept;
  try {
    kept = kafka::read_offsets_retention(config.kafka.properties, kafka::kSettingsTimeout);
  } catch (const std::exception&) {
    return;  // a right that nothing else needs
  }
  if (!kept) return;
  const std::string what = "offsets.retention.minutes of Kafka";
  const std::string found = std::to_string(kept->count());
  if (*kept >= kShortestRetention) return findings.ok(what, found);
  findings.warn(what,
                found +
                    ": a relay that dies may leave a batch open. If no relay runs for so long, "
                    "Kafka forgets the batch's marker, and the topic halts (marker_lost)",
                "set it to a day at least; Kafka's default is 10080, a week");
}

// Under a name of its own: one that a relay uses would be taken from it. The transaction is not
// committed, so Kafka aborts it.
void check_transactions(const config::Config& config, const std::string& topic,
                        Findings& findings) {
  const std::string what = "transactions into " + topic;
  findings.attempt(what, kMayTransact, [&] {
    kafka::TransactionalProducer producer(
        config.kafka.properties,
        {.topic = topic, .id = "hapax-outbox/" + group_of(config) + "/" + topic + ":check"});
    producer.init();
    producer.marker();
    producer.begin();
    producer.mark({0, "hapax check"});
    findings.ok(what,
                "allowed. Consumers get each record once if their isolation.level is "
                "read_committed: librdkafka's default, not the Java client's");
  });
}

}  // namespace hapax::app
