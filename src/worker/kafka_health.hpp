// Whether Kafka answers, as its client's errors and questions to a broker show it; and the password
// that the client uses.
//
// Owned by the poll thread.
#pragma once

#include <map>
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

  // While an error is in doubt: reads the credentials again and asks whether a broker answers.
  // Blocks: 50 ms.
  void turn();

  // Takes over a user name or a password that has changed in its @file. Only new connections need
  // it. Blocks: on the file.
  void renew_credentials();

  // No broker answered a question about topics. Tells the board of health.
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
  Repetitions refusals_;
  std::map<std::string, std::string> credentials_;  // sasl.username and sasl.password, as last read
};

// The settings with what their @files hold now. A file that cannot be read may be on its way: its
// value stays.
kafka::Properties current_properties(const config::Kafka& settings);

}  // namespace hapax::worker
