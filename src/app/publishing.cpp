#include "app/publishing.hpp"

#include <algorithm>

#include "cli/kafka_reader.hpp"
#include "cli/store_access.hpp"
#include "kafka/topic_settings.hpp"
#include "observe/log.hpp"
#include "observe/service_manager.hpp"
#include "store/operator/migrate.hpp"
#include "worker/connect_options.hpp"
#include "worker/kafka_health.hpp"

namespace hapax::app {
namespace {

// Kafka's own default, a little less.
constexpr std::size_t kUsualRecord = 1'000'000;
// A relay that died in a transaction of Kafka's hides other producers' records until another takes
// over.
constexpr std::chrono::seconds kLeaseOfTransactions{5};

std::string missing_topics(const config::Config& config) {
  try {
    const KafkaReader reader(config);
    std::string missing;
    for (const std::string& topic : config.publish.topics)
      if (reader.consumer().partition_count(topic, kKafkaTimeout) == 0)
        missing += (missing.empty() ? "" : ", ") + topic;
    return missing.empty() ? missing
                           : "Kafka has no topic " + missing +
                                 ", which publish.topics names; create it, or take it out";
  } catch (const std::exception& error) {
    return std::string("Kafka does not answer: ") + error.what();
  }
}

std::map<std::string, std::string> letter_topics(const config::Config& config) {
  std::map<std::string, std::string> topics;
  for (const config::Route& route : config.routes)
    if (!route.dead_letter_topic.empty()) topics.emplace(route.topic, route.dead_letter_topic);
  return topics;
}

outbox::RelaySetup relay_setup(const config::Config& config, const flow::Publishing* publishing) {
  outbox::RelaySetup setup{group_of(config),
                           config.worker.name,
                           [&config] { return store::Session(worker::connect_options(config)); },
                           [&config] { return worker::current_properties(config.kafka); },
                           {}};
  if (publishing != nullptr) setup.topics = publishing->topics;
  setup.letters = letter_topics(config);
  setup.transactions = config.publish.transactions;
  if (setup.transactions) setup.lease = kLeaseOfTransactions;
  return setup;
}

}  // namespace

std::shared_ptr<flow::Publishing> look_up_publishing(const config::Config& config,
                                                     const Waiting& waiting,
                                                     const std::atomic<int>& stop) {
  if (config.publish.topics.empty()) return nullptr;
  std::string said;
  for (std::string missing; !(missing = missing_topics(config)).empty(); said = missing) {
    if (!config.kafka.wait_for_topics) throw Stop(kUnreachable, missing);
    if (missing != said) {
      observe::log::warning("waiting_for_kafka", {{"error", missing}}, "waiting for Kafka");
      observe::service_manager::ready("waiting for Kafka: " + missing);
      if (waiting.missing) waiting.missing(missing);
    }
    if (waiting.turned) waiting.turned();  // a restart would not help
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (stop != 0) return nullptr;
  }
  auto publishing = std::make_shared<flow::Publishing>();
  bool tells = true;
  for (const std::string& topic : config.publish.topics) {
    std::size_t& limit = publishing->topics[topic];
    limit = kUsualRecord;
    try {
      if (!tells) continue;
      const auto settings =
          kafka::read_topic_settings(config.kafka.properties, topic, kafka::kSettingsTimeout);
      if (settings.max_message_bytes) limit = static_cast<std::size_t>(*settings.max_message_bytes);
    } catch (const std::exception& error) {
      tells = false;
      observe::log::warning("publish_limit_unknown", {{"topic", topic}, {"error", error.what()}},
                            "Kafka does not tell how large a record may be: taking 1 MB");
    }
  }
  return publishing;
}

bool needs_relay(const config::Config& config) {
  return !config.publish.topics.empty() || !letter_topics(config).empty();
}

RelayThread::RelayThread(const config::Config& config, const flow::Publishing* publishing,
                         observe::Metrics& metrics)
    : relay_(relay_setup(config, publishing), metrics),
      thread_([this](const std::stop_token& stop) { relay_.run(stop); }) {}

int oldest_schema(const config::Config& config) {
  if (std::ranges::any_of(config.routes,
                          [](const auto& route) { return key::is_by_position(route.key); }))
    return store::kPositionsSchema;
  if (config.publish.transactions) return store::kTransactionsSchema;
  if (std::ranges::any_of(config.routes, [](const auto& route) { return !!route.outside; }))
    return store::kOutsideSchema;
  return config.publish.topics.empty() ? store::kOldestSchema : store::kOutboxSchema;
}

}  // namespace hapax::app
