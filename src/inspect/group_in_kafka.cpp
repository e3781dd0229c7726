#include "inspect/group_in_kafka.hpp"

#include <vector>

#include "cli/store_access.hpp"

namespace hapax::app {
namespace {

// If a broker does not know the request, it is asked again for so long.
constexpr std::chrono::milliseconds kMembersTimeout{3000};

// The time for one answer to a fetch. Without an answer the report does not name the right to read.
constexpr std::chrono::milliseconds kReadTimeout{3000};

// The partitions of the routes' topics.
void find_partitions(const config::Config& config, const kafka::Consumer& consumer,
                     KafkaSide& side) {
  for (const config::Route& route : config.routes) {
    try {
      const int count = consumer.partition_count(route.topic, kKafkaTimeout);
      for (int partition = 0; partition < count; ++partition)
        side.partitions[{route.topic, partition}];
      if (count == 0) side.refused[route.topic] = "it does not exist";
    } catch (const std::exception& error) {
      side.refused[route.topic] = error.what();
    }
  }
}

void find_ends(Readers& readers, KafkaSide& side) {
  const kafka::Consumer& consumer = readers.whole.consumer();
  std::vector<store::TopicPartition> asked;
  for (const auto& [partition, unused] : side.partitions)
    if (!side.refused.contains(partition.first)) asked.push_back(partition);
  if (asked.empty()) return;
  for (const auto& [partition, committed] : consumer.committed(asked, kKafkaTimeout))
    side.partitions[partition].committed = committed.offset;
  // 0: the topic was deleted, so its partitions are not asked for.
  std::map<std::string, int> counts;
  for (const store::TopicPartition& partition : asked) {
    const auto [count, is_new] = counts.try_emplace(partition.first);
    if (is_new) count->second = consumer.partition_count(partition.first, kKafkaTimeout);
    if (partition.second >= count->second) continue;
    PartitionInKafka& found = side.partitions[partition];
    found.end = consumer.range(partition, kKafkaTimeout).high;
    if (*found.end <= found.committed.value_or(0)) continue;
    const auto stable = readers.stable.consumer().range(partition, kKafkaTimeout).high;
    if (stable < *found.end) found.open_since = stable;
  }
}

// Kafka grants the right to read by topic, so one partition tells it for all.
void find_refusals(const config::Config& config, KafkaSide& side) {
  std::vector<kafka::Position> positions;
  for (const config::Route& route : config.routes)
    if (const auto first = side.partitions.find({route.topic, 0});
        first != side.partitions.end() && first->second.end)
      positions.push_back({first->first, *first->second.end});
  if (positions.empty()) return;
  KafkaReader reader(config, KafkaReader::End::whole);
  side.refused.merge(reader.refusals(positions, kReadTimeout));
}

}  // namespace

void ask_kafka(const config::Config& config, Readers& readers, KafkaSide& side) {
  try {
    readers.whole.reach(kKafkaTimeout);
    find_partitions(config, readers.whole.consumer(), side);
    find_ends(readers, side);
  } catch (const std::exception& error) {
    side.away = error.what();
    return;
  }
  try {
    find_refusals(config, side);
  } catch (const std::exception&) {
    // If hapax cannot ask for a partition, the report does not name the right to read.
  }
  try {
    side.members = readers.whole.consumer().members(group_of(config), kMembersTimeout);
  } catch (const std::exception&) {
    // If this user may not describe the group, the report holds all the rest.
  }
}

}  // namespace hapax::app
