// Asks Kafka about a group: offsets, ends, members, and topics that cannot be read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cli/kafka_reader.hpp"
#include "config/config.hpp"
#include "kafka/consumer.hpp"
#include "store/worker/positions.hpp"

namespace hapax::app {

// What Kafka knows of one partition; empty if it does not answer.
struct PartitionInKafka {
  std::optional<std::int64_t> committed, end;
  std::optional<std::int64_t> open_since;  // the offset of a producer's transaction, if one is open
};

// What Kafka knows of the group.
struct KafkaSide {
  std::map<store::TopicPartition, PartitionInKafka> partitions;
  std::map<std::string, std::string> refused;  // topics of routes: why they cannot be read
  std::optional<kafka::Members> members;
  std::string away;  // why Kafka does not answer, or no longer
};

// The clients that ask. Never destroy one, because librdkafka 2.0.2 would wait without bound for a
// group that no broker describes.
struct Readers {
  explicit Readers(const config::Config& config)
      : whole(config, KafkaReader::End::whole), stable(config) {}
  KafkaReader whole;
  KafkaReader stable;  // sees only what a worker sees
};

// Asks for all partitions in `side`, and for those of the routes' topics. If Kafka stops answering,
// the numbers up to then are there. Blocks: at most kKafkaTimeout for each answer.
void ask_kafka(const config::Config& config, Readers& readers, KafkaSide& side);

}  // namespace hapax::app
