#include "support/secure_kafka.hpp"

#include <librdkafka/rdkafka.h>

#include "kafka/client_error.hpp"
#include "sandbox/free_port.hpp"

namespace hapax::support {
namespace {

std::string scram(const std::string& password) {
  return std::string("SCRAM-SHA-512=[name=") + SecureKafka::kUser + ",password=" + password + "]";
}

}  // namespace

SecureKafka::SecureKafka(const std::string& password)
    : folder_("secure-kafka"),
      authority_(folder_.path(), "kafka-ca"),
      clients_(folder_.path(), "kafka-clients-ca"),
      port_(sandbox::free_port()),
      expired_port_(sandbox::free_port()),
      mutual_port_(sandbox::free_port()),
      certificate_(authority_.issue("kafka", "localhost")),
      expired_(authority_.issue("kafka-expired", "localhost", Valid::expired)),
      server_(settings(password), {"--add-scram", scram(password)}) {}

bool SecureKafka::can_scram() { return !kafka::has_broken_scram(rd_kafka_version()); }

std::map<std::string, std::string> SecureKafka::properties() const {
  return {{"bootstrap.servers", "localhost:" + std::to_string(port_)},
          {"broker.address.family", "v4"},  // Kafka listens at one address of a host only
          {"security.protocol", "sasl_ssl"},
          {"sasl.mechanism", can_scram() ? "SCRAM-SHA-512" : "PLAIN"},
          {"sasl.username", kUser},
          {"ssl.ca.location", authority_.certificate()}};
}

std::map<std::string, std::string> SecureKafka::settings(const std::string& password) const {
  std::map<std::string, std::string> all = {
      {"listeners", "SECURE://localhost:" + std::to_string(port_) + ",EXPIRED://localhost:" +
                        std::to_string(expired_port_) + ",MUTUAL://" + mutual_bootstrap()},
      {"listener.security.protocol.map", "SECURE:SASL_SSL,EXPIRED:SASL_SSL,MUTUAL:SSL"},
      {"listener.name.mutual.ssl.client.auth", "required"},
      {"listener.name.mutual.ssl.truststore.type", "PEM"},
      {"listener.name.mutual.ssl.truststore.location", clients_.certificate()},
      {"group.min.session.timeout.ms", "1000"}};
  const std::string package = "org.apache.kafka.common.security.";
  for (const auto& [listener, certificate] :
       {std::pair("secure", certificate_), std::pair("expired", expired_),
        std::pair("mutual", certificate_)}) {
    const std::string prefix = std::string("listener.name.") + listener + ".";
    all[prefix + "ssl.keystore.type"] = "PEM";
    all[prefix + "ssl.keystore.location"] = certificate.bundle;
    all[prefix + "sasl.enabled.mechanisms"] = "SCRAM-SHA-512,PLAIN";
    all[prefix + "scram-sha-512.sasl.jaas.config"] = package + "scram.ScramLoginModule required;";
    all[prefix + "plain.sasl.jaas.config"] =
        package + "plain.PlainLoginModule required user_" + kUser + "=\"" + password + "\";";
  }
  return all;
}

void SecureKafka::change_password(const std::string& password) {
  server_.set_scram_password(kUser, password);
  server_.stop();
  server_.write_settings(settings(password));
  server_.start();
}

}  // namespace hapax::support
