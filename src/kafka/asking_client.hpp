// A client that asks brokers, and never joins a group. One client asks with one isolation level.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kafka/consumer.hpp"

namespace hapax::kafka {

struct AskingClient final : Listener {
  // `properties`: with a group.id, about which it may ask. `isolation`: isolation.level.
  // Throws: as Consumer.
  AskingClient(Properties properties, const char* isolation)
      : consumer(with(std::move(properties), isolation), *this) {}

  static Properties with(Properties properties, const char* isolation) {
    properties["isolation.level"] = isolation;
    return properties;
  }
  void on_assigned(const std::vector<TopicPartition>&) override {}
  void on_revoked(const std::vector<TopicPartition>&, bool) override {}
  void on_committed(const std::vector<Commit>&, CommitResult, const std::string&) override {}
  void on_client_error(const ClientError&) override {}

  Consumer consumer;
};

}  // namespace hapax::kafka
