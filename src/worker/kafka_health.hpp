// Knows whether Kafka answers, by the client's errors and by questions to a broker. Also renews the
// password that the client uses.
//
// Owned by the poll thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "worker/repetitions.hpp"

namespace hapax::worker {

class KafkaHealth {
 public:
  // `topic`: any one, to ask a broker about. The references outlive this.
  KafkaHealth(const config::Kafka& settings, std::string topic, kafka::ConsumerInterface& consumer,
              observe::Health& health);

  // The client reports an error. A fatal one is final. After any other, turn() asks a broker.
  void failed(const kafka::ClientError& error);

  // Kafka does not let this user into the group. The client goes on asking.
  void refused_by_group(const std::string& why);

  // If there was an error since a broker last answered, reads the credentials again and asks a
  // broker.
  // Blocks: 50 ms.
  void turn();

  // If a user name or password has changed in its @file, gives it to the client for new
  // connections. Blocks: on the file.
  void renew_credentials();

  // No broker answered a question about topics. Writes that to the board of health.
  void does_not_answer();

  bool is_fatal() const { return is_fatal_; }
  // The last error's sentence; empty if a broker has answered since.
  const std::string& last_error() const { return last_error_; }

 private:
  bool broker_answers() const;

  const config::Kafka& settings_;
  const std::string topic_;
  kafka::ConsumerInterface& consumer_;
  observe::Health& health_;

  bool is_fatal_ = false;
  bool in_doubt_ = false;  // there was an error since a broker last answered
  bool is_down_ = false;
  std::string last_error_;
  std::optional<kafka::ClientError> unlogged_;  // it may pass; logged if no broker answers
  Repetitions refusals_;
  std::map<std::string, std::string> credentials_;  // sasl.username and sasl.password, as last read
};

// The settings with the current values of their @files. If a file cannot be read, it may be about
// to be replaced, so its last value stays.
kafka::Properties current_properties(const config::Kafka& settings);

}  // namespace hapax::worker
