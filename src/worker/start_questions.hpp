// Asks Kafka and PostgreSQL about partitions that are to start, with few questions for all of them.
//
// Thread safety: none; the thread of starts has it.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <string>

#include "kafka/consumer.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/logs.hpp"
#include "worker/held_partitions.hpp"
#include "worker/keeper_session.hpp"
#include "worker/keeper_setup.hpp"
#include "worker/repetitions.hpp"
#include "worker/start.hpp"

namespace hapax::worker {

// Bounds each question to Kafka; the group goes on polling meanwhile.
inline constexpr std::chrono::milliseconds kKafkaTimeout{5000};

class StartQuestions {
 public:
  struct Answers {
    std::map<TopicPartition, kafka::Committed> committed;
    std::map<TopicPartition, kafka::OffsetRange> ranges;
    std::map<std::string, std::string> topic_ids;
    std::map<TopicPartition, store::CheckpointRow> rows;
    store::KnownLogs logs;
    std::map<TopicPartition, store::Doubt> doubts;  // of routes that call to the outside

    // Whether its broker did not answer for many partitions at once.
    bool was_asked_alone(const TopicPartition& id) const {
      return committed.contains(id) && topic_ids.contains(id.first) && !ranges.contains(id);
    }
  };

  StartQuestions(const KeeperSetup& setup, kafka::Consumer& consumer)
      : setup_(setup), consumer_(consumer) {}

  // Throws: DatabaseError; std::runtime_error if Kafka does not tell the group's offsets.
  // Blocks: until PostgreSQL has answered, and Kafka, or kKafkaTimeout for each question.
  Answers ask(const HeldPartitions::List& partitions, KeeperSession& session);

  // All facts but the store and the cluster. If a broker did not answer for many partitions, asks
  // it again for this one. Throws: std::runtime_error if Kafka does not tell. Blocks: likewise.
  StartFacts facts_of(const Partition& partition, const Answers& answers) const;

  // Logs that Kafka did not answer, so that partitions start later: once a minute for each cause,
  // because each partition is tried twice a second.
  void log_delayed(const std::exception& error);

 private:
  const KeeperSetup& setup_;
  kafka::Consumer& consumer_;
  Repetitions delays_;
};

}  // namespace hapax::worker
