// What a consumer fetches: which partitions, from which offsets, and which of them are paused.
#include <librdkafka/rdkafka.h>

#include <stdexcept>
#include <utility>

#include "kafka/consumer.hpp"
#include "kafka/handles.hpp"
#include "kafka/request.hpp"

namespace hapax::kafka {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMostToWake{1};  // the request wakes the thread, not its answer
constexpr milliseconds kMostToSeek{1000};

// Before this version, librdkafka reads these milliseconds as microseconds, for each answer.
constexpr int kTakesMicroseconds = 0x02010000;

int seek_timeout() {
  return timeout_of(kMostToSeek) * (rd_kafka_version() < kTakesMicroseconds ? 1000 : 1);
}

// If librdkafka fetched from here by mistake, messages would only repeat. From a later offset, some
// would be skipped.
constexpr std::int64_t kNowhere = 0;

}  // namespace

// Assigns the partitions paused and at no real offset, so that librdkafka fetches nothing yet.
// start() moves each partition to its offset once PostgreSQL knows that offset. A new assignment
// for each start would stop all other partitions. It would also abort the process if librdkafka had
// not yet stopped the assignment before.
void Consumer::hold(rd_kafka_topic_partition_list_t* partitions) {
  for (int i = 0; i < partitions->cnt; ++i) partitions->elems[i].offset = kNowhere;
  fetched_.clear();
  assigned_.clear();
  for (TopicPartition& partition : partitions_of(partitions))
    assigned_.insert(std::move(partition));
  rd_kafka_pause_partitions(client_, partitions);
  // Partitions that the metadata lack until they are assigned.
  const ListHandle unknown = new_list();
  for (int i = 0; i < partitions->cnt; ++i)
    if (const auto& entry = partitions->elems[i]; entry.err != RD_KAFKA_RESP_ERR_NO_ERROR)
      add(unknown, {entry.topic, entry.partition});
  if (const auto error = rd_kafka_assign(client_, partitions)) throw error_of("assign", error);
  if (unknown->cnt > 0) rd_kafka_pause_partitions(client_, unknown.get());
  await_stopped();
}

void Consumer::unassign() {
  rd_kafka_assign(client_, nullptr);
  assigned_.clear();
  fetched_.clear();
}

// librdkafka's main thread serves its queue in order. The first question stands behind the stops
// of the assignment before, the second behind their answers. An assignment that comes earlier
// stops those partitions twice, and that aborts the process (rdkafka_assignment.c).
void Consumer::await_stopped() {
  for (int question = 0; question < 2; ++question) {
    rd_kafka_topic_partition_list_t* assigned = nullptr;
    if (rd_kafka_assignment(client_, &assigned) == RD_KAFKA_RESP_ERR_NO_ERROR)
      const ListHandle list(assigned);
  }
}

std::vector<TopicPartition> Consumer::start(const std::vector<Position>& positions) {
  std::vector<TopicPartition> refused;
  if (positions.empty()) return refused;
  const ListHandle list = new_list(positions.size());
  for (const Position& position : positions) add(list, position.partition).offset = position.offset;
  const ErrorHandle unanswered(rd_kafka_seek_partitions(client_, list.get(), seek_timeout()));
  for (int i = 0; i < list->cnt; ++i) {
    const TopicPartition partition(list->elems[i].topic, list->elems[i].partition);
    if (unanswered || list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      refused.push_back(partition);
    } else {
      resume(partition);
    }
  }
  return refused;
}

std::vector<TopicPartition> Consumer::restart(const std::vector<Position>& positions) {
  const ListHandle list = new_list(assigned_.size());
  for (const TopicPartition& partition : assigned_) add(list, partition);
  hold(list.get());
  return start(positions);
}

void Consumer::assign(const std::vector<Position>& positions) {
  const ListHandle list = new_list(positions.size());
  for (const Position& position : positions) add(list, position.partition);
  hold(list.get());
  if (!start(positions).empty()) throw std::runtime_error("librdkafka cannot start to read");
}

void Consumer::pause(const std::vector<TopicPartition>& partitions) {
  const ListHandle list = new_list(partitions.size());
  for (const TopicPartition& partition : partitions)
    if (fetched_.erase(partition) > 0) add(list, partition);
  if (list->cnt > 0) rd_kafka_pause_partitions(client_, list.get());
}

// Does nothing the second time, because librdkafka would drop fetched messages and go on after
// them.
void Consumer::resume(const TopicPartition& partition) {
  if (!assigned_.contains(partition) || !fetched_.insert(partition).second) return;
  const ListHandle list = new_list();
  add(list, partition);
  rd_kafka_resume_partitions(client_, list.get());
}

// Any request to a partition's leader makes the thread that fetches from it look for room. It does
// not reach a thread that fetches from a follower (client.rack).
void Consumer::wake_fetchers() {
  unwoken_ = 0;
  rd_kafka_topic_partition_list_t* assigned = nullptr;
  if (rd_kafka_assignment(client_, &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const ListHandle list(assigned);
  for (int i = 0; i < list->cnt; ++i) list->elems[i].offset = RD_KAFKA_OFFSET_END;
  if (list->cnt > 0) rd_kafka_offsets_for_times(client_, list.get(), timeout_of(kMostToWake));
}

}  // namespace hapax::kafka
