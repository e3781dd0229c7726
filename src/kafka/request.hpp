// What kafka/*.cpp share to ask librdkafka something.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "kafka/handles.hpp"

namespace hapax::kafka {

inline int timeout_of(std::chrono::milliseconds timeout) {
  return static_cast<int>(timeout.count());
}

inline std::runtime_error error_of(const std::string& what, rd_kafka_resp_err_t error) {
  return std::runtime_error(what + ": " + rd_kafka_err2str(error));
}

inline ListHandle new_list(std::size_t size = 1) {
  return ListHandle(rd_kafka_topic_partition_list_new(static_cast<int>(size)));
}

inline rd_kafka_topic_partition_t& add(const ListHandle& list, const TopicPartition& partition) {
  return *rd_kafka_topic_partition_list_add(list.get(), partition.first.c_str(), partition.second);
}

inline std::vector<TopicPartition> partitions_of(const rd_kafka_topic_partition_list_t* list) {
  std::vector<TopicPartition> partitions;
  for (int i = 0; list != nullptr && i < list->cnt; ++i)
    partitions.emplace_back(list->elems[i].topic, list->elems[i].partition);
  return partitions;
}

#if RD_KAFKA_VERSION >= 0x02030000
// Empty if the broker has none for the topic (Kafka before 2.8): librdkafka then gives zeros.
inline std::string text_of(const rd_kafka_Uuid_t* id) {
  if (id == nullptr || (rd_kafka_Uuid_most_significant_bits(id) == 0 &&
                        rd_kafka_Uuid_least_significant_bits(id) == 0))
    return {};
  return rd_kafka_Uuid_base64str(id);
}
#endif

}  // namespace hapax::kafka
