// `hapax check`: Kafka's side.
#include <algorithm>

#include "app/findings.hpp"
#include "cli/kafka_reader.hpp"
#include "config/kafka_rules.hpp"
#include "config/units.hpp"
#include "kafka/topic_settings.hpp"

namespace hapax::app {
namespace {

std::string property(const config::Config& config, const std::string& name) {
  const auto found = config.kafka.properties.find(name);
  return found == config.kafka.properties.end() ? "" : found->second;
}

// A replay from the topic's beginning must still find its keys, or I8 halts it.
void check_retention(const KafkaReader& reader, const config::Route& route, Findings& findings) {
  const std::string what = "retention of topic " + route.topic;
  kafka::TopicSettings settings;
  try {
    settings = reader.consumer().topic_settings(route.topic, kafka::kSettingsTimeout);
  } catch (const std::exception& error) {
    findings.warn(what, std::string("cannot tell: ") + error.what(),
                  "keep routes[].retention above the topic's retention.ms");
    return;
  }
  const bool for_ever = settings.retention_ms == -1 || settings.cleanup_policy == "compact";
  if (!for_ever && !settings.retention_ms) {
    findings.warn(what, "cannot tell: the broker names no retention.ms",
                  "keep routes[].retention above the topic's retention.ms");
    return;
  }
  const std::string kept =
      for_ever ? "for ever"
               : config::format_duration(std::chrono::milliseconds(*settings.retention_ms));
  const std::string found =
      "keys are kept " + config::format_duration(route.retention) + ", messages " + kept;
  if (!for_ever && route.retention.count() >= *settings.retention_ms) {
    findings.ok(what, found);
  } else {
    findings.warn(what, found,
                  "a replay of messages older than their keys halts, and a new group runs them "
                  "again; raise routes[].retention, or lower the topic's retention.ms");
  }
}

// Who encodes payloads by a registry may encode keys so, too, and their bytes hold an id.
void warn_of_record_keys(const config::Route& route, Findings& findings) {
  const auto is_record_key = [](const key::Source& source) {
    return source.kind == key::Source::Kind::record_key;
  };
  if (route.payload.format == config::Payload::Format::plain ||
      (std::ranges::none_of(route.key.sources, is_record_key) &&
       !(route.key.tenant && is_record_key(*route.key.tenant))))
    return;
  findings.warn("keys of topic " + route.topic,
                "are made of record keys. If the producer writes these with a serializer of a "
                "schema registry, they hold a schema's id. An operation that comes again under "
                "another id then takes effect twice",
                "right if record keys are plain text; else take the key from the payload or from "
                "a header");
}

void check_topic(const config::Config& config, const KafkaReader& reader,
                 const config::Route& route, Findings& findings) {
  const std::string what = "topic " + route.topic;
  findings.attempt(what, "may the user of kafka.* describe it?", [&] {
    const int partitions = reader.consumer().partition_count(route.topic, kKafkaTimeout);
    findings.judge(partitions > 0, what,
                   partitions > 0 ? std::to_string(partitions) + " partitions" : "does not exist",
                   "create it: kafka-topics.sh --bootstrap-server " +
                       property(config, "bootstrap.servers") + " --create --topic " + route.topic +
                       " --partitions 6 (a worker waits for it, unless kafka.wait_for_topics is "
                       "false)");
    if (partitions > 0) check_retention(reader, route, findings);
    warn_of_record_keys(route, findings);
    if (key::may_be_coordinates(route.key))
      findings.ok("keys of topic " + route.topic,
                  "may be made of coordinates, which name a message of this log only. A mirror "
                  "of the topic, or the topic made again, is another log: everything runs again");
  });
}

bool is_local(const std::string& servers) {
  std::size_t from = 0;
  while (from < servers.size()) {
    const auto end = std::min(servers.size(), servers.find(',', from));
    const std::string server = servers.substr(from, end - from);
    if (!server.starts_with("localhost") && !server.starts_with("127.") &&
        !server.starts_with("[::1]"))
      return false;
    from = end + 1;
  }
  return true;
}

// Settings that do nothing beside the others.
void check_identity(const config::Config& config, bool tls, bool sasl, Findings& findings) {
  const auto is_set = [&](const char* name) { return !property(config, name).empty(); };
  if (!sasl && is_set("sasl.username"))
    findings.warn("Kafka's user", "sasl.username has no effect with this security.protocol",
                  "set kafka.security.protocol to sasl_ssl, or remove it");
  if (!tls && (is_set("ssl.certificate.location") || is_set("ssl.ca.location")))
    findings.warn("Kafka's certificates", "ssl.* has no effect with this security.protocol",
                  "set kafka.security.protocol to ssl or sasl_ssl, or remove them");
  if (tls && is_set("ssl.certificate.location") && !is_set("ssl.key.location") &&
      !is_set("ssl.key.pem"))
    findings.fail("Kafka's certificates", "ssl.certificate.location has no key, so it is not shown",
                  "name its key with kafka.ssl.key.location");
}

// What others on the network can read or forge.
void check_transport(const config::Config& config, Findings& findings) {
  const std::string what = "Kafka's transport";
  std::string protocol = property(config, "security.protocol");
  if (protocol.empty()) protocol = "plaintext";
  const bool tls = protocol.ends_with("ssl") || protocol.ends_with("SSL");
  check_identity(config, tls, protocol.starts_with("sasl") || protocol.starts_with("SASL"),
                 findings);
  if (tls && !config::verifies_brokers(config.kafka.properties)) {
    findings.warn(what, protocol + ", and the brokers' certificates are not verified",
                  "anybody between can act as the broker: leave "
                  "enable.ssl.certificate.verification and "
                  "ssl.endpoint.identification.algorithm at their defaults");
  } else if (tls) {
    findings.ok(what, protocol);
  } else if (is_local(property(config, "bootstrap.servers"))) {
    findings.ok(what, protocol + ", on this machine");
  } else {
    findings.warn(what,
                  protocol + ": the network can read and change messages" +
                      (protocol == "plaintext" ? "" : ", and may learn the password"),
                  "set kafka.security.protocol to ssl or sasl_ssl");
  }
}

// The brokers of bootstrap.servers only name the others. False: none of them answers.
bool check_advertised(KafkaReader& reader, Findings& findings) {
  const kafka::Consumer::Brokers brokers = reader.consumer().ask_brokers(kKafkaTimeout);
  for (const kafka::Broker& broker : brokers.silent) {
    const std::string why = reader.error_of(broker);
    findings.fail("broker " + std::to_string(broker.id),
                  "it advertises " + broker.address + ", and does not answer there" +
                      (why.empty() ? "" : ": " + why),
                  "correct advertised.listeners at the broker, or let this machine resolve and "
                  "reach " +
                      broker.address);
  }
  if (brokers.silent.empty())
    findings.ok("brokers", std::to_string(brokers.count) + ", all answer at what they advertise");
  return brokers.silent.size() < brokers.count;
}

}  // namespace

void check_kafka(const config::Config& config, Findings& findings, const config::Gate* gate) {
  check_transport(config, findings);
  const std::string& servers = config.kafka.properties.at("bootstrap.servers");
  findings.attempt("Kafka", "see kafka.* in the configuration, and the brokers at " + servers, [&] {
    KafkaReader reader(config);
    const std::string cluster = reader.reach(kKafkaTimeout);
    findings.ok("Kafka", "cluster " + cluster + " at " + servers);
    if (!check_advertised(reader, findings)) return;  // each further question would wait, too
    if (gate == nullptr) {
      for (const config::Route& route : config.routes) check_topic(config, reader, route, findings);
      check_dead_letter_topics(config, reader, findings);
      check_starts(config, reader, cluster, findings);
    }
    check_publish_topics(config, reader, findings, gate);
    if (config.publish.transactions) check_offsets_retention(config, findings);
  });
}

}  // namespace hapax::app
