// Looks whether the record that another group read last is still in the log of a partition that has
// not started. The look decides the start. None of the fetched messages runs.
//
// Owned by the poll thread.
#pragma once

#include <memory>
#include <optional>

#include "kafka/consumer.hpp"
#include "worker/fetches.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/notices.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class RecordLooks {
 public:
  // The references outlive this.
  RecordLooks(const Partitions& partitions, Fetches& fetches, KeeperInterface& keeper,
              Now now = &Clock::now);

  // Fetches the record at the next turn. Kafka may take long, as for any start.
  void begin(const LookWanted& wanted);

  // Serves a record of a partition that has not started.
  void serve(const kafka::Record& record);
  void serve(const kafka::EndOfPartition& end);
  // False if the error belongs to no look, or to all partitions of the topic.
  bool serve(const kafka::PartitionError& error);

 private:
  std::shared_ptr<Partition> find(const TopicPartition& id) const;
  void answer(const std::shared_ptr<Partition>& partition, std::optional<ReadRecord> found);
  void start_again(const std::shared_ptr<Partition>& partition);

  const Partitions& partitions_;
  Fetches& fetches_;
  KeeperInterface& keeper_;
  const Now now_;
};

}  // namespace hapax::worker
