// `hapax check`: whether records of a topic may go in Kafka's transactions.
#include "app/findings.hpp"
#include "cli/store_access.hpp"
#include "kafka/transactional_producer.hpp"

namespace hapax::app {
namespace {

constexpr const char* kMayTransact =
    "records wait until the relay may use transactions; give the user of kafka.* Write and "
    "Describe on the transactional ids, and Read on the groups, that begin with hapax-outbox/ and "
    "the group, and Read on the topic";

}  // namespace

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
