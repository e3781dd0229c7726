// Kafka as the operator's commands see it: a client that asks and never joins the group.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "kafka/consumer.hpp"

namespace hapax::app {

// How long a command waits for one answer.
inline constexpr std::chrono::milliseconds kKafkaTimeout{10'000};

class KafkaReader final : kafka::Listener {
 public:
  // What it takes for the log's end: the first open transaction, as a worker does, or the last
  // record.
  enum class End { stable, whole };

  // Throws: Stop(kConfigWrong) naming the properties that librdkafka refuses.
  explicit KafkaReader(const config::Config& config, End end = End::stable);

  // The cluster's id once a broker answers.
  // Throws: std::runtime_error with librdkafka's reasons, a line each. Blocks: at most `timeout`,
  // and half a second.
  std::string reach(std::chrono::milliseconds timeout);

  using Take = std::function<void(std::unique_ptr<kafka::Record>)>;

  // The offsets [from, to) of one partition.
  struct Stretch {
    kafka::TopicPartition partition;
    std::int64_t from = 0;
    std::int64_t to = 0;
  };

  // Reads several partitions at once. Hands their records to `take`, each partition's in order:
  // what a worker would see, so nothing for control records, aborted transactions and what
  // compaction removed. Commits nothing. Returns for each stretch its `to`, or where the log ends
  // before it. Throws: std::runtime_error where Kafka is silent for kSilence, has deleted `from`,
  // or cannot read an offset; what `take` throws. Blocks: as long as it takes. Precondition: each
  // `from` is in its log; no partition stands there twice.
  std::vector<std::int64_t> read(const std::vector<Stretch>& stretches, const Take& take);
  static constexpr std::chrono::seconds kSilence{30};

  // The topics that Kafka does not let this user read, and its words: who may describe a topic need
  // not be allowed to read it. Without those for which no broker answers in time. librdkafka tells
  // a refusal once, so ask a new reader each time. Precondition: `positions` are in the logs.
  // Throws: std::runtime_error. Blocks: at most `timeout`, and a second.
  std::map<std::string, std::string> refusals(const std::vector<kafka::Position>& positions,
                                              std::chrono::milliseconds timeout);

  const kafka::Consumer& consumer() const { return consumer_; }

 private:
  void on_assigned(const std::vector<kafka::TopicPartition>&) override {}
  void on_revoked(const std::vector<kafka::TopicPartition>&, bool) override {}
  void on_committed(const std::vector<kafka::Commit>&, kafka::CommitResult,
                    const std::string&) override {}
  void on_client_error(const kafka::ClientError& error) override {
    // The last one is the consequence of the others.
    if (error.name == "_ALL_BROKERS_DOWN" && !errors_.empty()) return;
    if (errors_.size() < kMaxErrors && std::ranges::find(errors_, error.text) == errors_.end())
      errors_.push_back(error.text);
  }
  std::string errors() const;

  static constexpr std::size_t kMaxErrors = 5;
  std::vector<std::string> errors_;  // librdkafka's first ones, such as of each broker
  kafka::Consumer consumer_;
};

}  // namespace hapax::app
