// A Kafka that accepts clients by TLS and SASL only, and the test itself in plain text. Its second
// listener has an expired certificate. The third asks for a client certificate instead of a
// password.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sandbox/temporary_folder.hpp"
#include "support/certificates.hpp"
#include "support/kafka_server.hpp"

namespace hapax::support {

class SecureKafka {
 public:
  static constexpr const char* kUser = "hapax";

  // Blocks: seconds. Precondition: as shared_kafka()'s.
  explicit SecureKafka(const std::string& password);

  // A worker's properties without the password. SCRAM if librdkafka can do it with this Kafka
  // (2.6.1 and later), else PLAIN over TLS.
  std::map<std::string, std::string> properties() const;
  static bool can_scram();

  // The listener with the expired certificate.
  std::string expired_bootstrap() const { return "localhost:" + std::to_string(expired_port_); }
  // The listener for client certificates, and who must have signed them.
  std::string mutual_bootstrap() const { return "localhost:" + std::to_string(mutual_port_); }
  Authority& clients() { return clients_; }
  // A name that is not in the certificate.
  std::string bootstrap_by_address() const { return "127.0.0.1:" + std::to_string(port_); }
  // In plain text, for the test.
  std::string bootstrap() const { return server_.bootstrap(); }

  void kill() { server_.kill(); }
  void start() { server_.start(); }

  // Starts the server again; connections are lost, and the old password is of no use.
  void change_password(const std::string& password);

 private:
  std::map<std::string, std::string> settings(const std::string& password) const;

  sandbox::TemporaryFolder folder_;
  Authority authority_;
  Authority clients_;
  std::uint16_t port_;
  std::uint16_t expired_port_;
  std::uint16_t mutual_port_;
  Certificate certificate_;
  Certificate expired_;
  KafkaServer server_;
};

}  // namespace hapax::support
