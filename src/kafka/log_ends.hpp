// The ends of logs, with the messages that open transactions hide. A consumer with read_committed
// is told an end before them, also if a message behind such a transaction belongs to none.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kafka/asking_client.hpp"

namespace hapax::kafka {

class LogEnds {
 public:
  // `properties`: of the worker's consumer, as they are now: a password may have changed.
  explicit LogEnds(std::function<Properties()> properties) : properties_(std::move(properties)) {}

  // Leaves out what Kafka does not tell. Throws: std::runtime_error. Blocks: at most `timeout`, and
  // once more for each topic if a broker did not tell.
  std::map<TopicPartition, std::int64_t> ask(const std::vector<TopicPartition>& partitions,
                                             std::chrono::milliseconds timeout);

 private:
  void learn_leaders(const std::vector<TopicPartition>& partitions,
                     std::chrono::milliseconds timeout) const;

  const std::function<Properties()> properties_;
  std::unique_ptr<AskingClient> client_;                  // since the first question
  std::pair<std::string, std::string> credentials_ = {};  // user and password that it has
};

}  // namespace hapax::kafka
