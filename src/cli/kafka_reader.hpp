// Kafka for the operator's commands: a client that asks, and never joins the group.
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
  // Which end of the log it reads to: the first open transaction, as a worker does, or the last
  // record.
  enum class End { stable, whole };

  // Throws: Stop(kConfigWrong) naming the properties that librdkafka refuses.
  explicit KafkaReader(const config::Config& config, End end = End::stable);

  // The cluster's id once a broker answers.
  // Throws: std::runtime_error with librdkafka's reasons, a line each. Blocks: at most `timeout`,
  // and half a second.
  std::string reach(std::chrono::milliseconds timeout);

  // What librdkafka has told of this broker, or "".
  // Blocks: a tenth of a second.
  std::string error_of(const kafka::Broker& broker);

  using Take = std::function<void(std::unique_ptr<kafka::Record>)>;

  // The offsets [from, to) of one partition.
  struct Stretch {
    kafka::TopicPartition partition;
    std::int64_t from = 0;
    std::int64_t to = 0;
  };

  // Reads several partitions at once, and gives their records to `take`, each partition's in order.
  // `take` gets the records that a worker would get: no control records, no aborted transactions,
  // and none that compaction removed. Commits nothing. Returns for each stretch its `to`, or the
  // log's end if that comes before. Precondition: each `from` is in its log, and no partition is
  // given twice.
  // Throws: std::runtime_error if Kafka is silent for kSilence, has deleted `from`, or cannot read
  // an offset; what `take` throws.
  // Blocks: until all is read.
  std::vector<std::int64_t> read(const std::vector<Stretch>& stretches, const Take& take);
  static constexpr std::chrono::seconds kSilence{30};

  // The topics that Kafka does not let this user read, with Kafka's words. A user may be allowed to
  // describe a topic and not to read it. Leaves out topics for which no broker answers in time.
  // librdkafka reports a refusal once, so use a new reader each time. Precondition: `positions` are
  // in the logs.
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
    // This error follows from the others.
    if (error.name == "_ALL_BROKERS_DOWN" && !errors_.empty()) return;
    if (errors_.size() < kMaxErrors && std::ranges::find(errors_, error.text) == errors_.end())
      errors_.push_back(error.text);
  }
  std::string errors() const;

  static constexpr std::size_t kMaxErrors = 5;
  std::vector<std::string> errors_;  // librdkafka's first errors, such as one for each broker
  kafka::Consumer consumer_;
};

}  // namespace hapax::app
