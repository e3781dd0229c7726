// Decides which of the started partitions librdkafka fetches: starts, pauses and resumes them.
//
// A pause is expensive, because librdkafka drops the records that it has fetched ahead. To fetch
// them again takes a round trip to the broker.
//
// Owned by the poll thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "kafka/consumer_interface.hpp"
#include "worker/dispatcher.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class Fetches {
 public:
  // The references outlive this.
  Fetches(const Partitions& partitions, kafka::ConsumerInterface& consumer, Now now = &Clock::now);

  // The start of this partition is agreed: fetch it at the next turn. A look at it is over.
  void started(const TopicPartition& partition);

  // Before the partition starts: fetches this record and later ones, until stop().
  void look(Partition& partition, const ReadRecord& record) {
    partition.polling.looks_for = record;
    to_start_.insert(partition.id());
  }
  // Whether records of this partition were fetched for a look.
  bool looks(const Partition& partition) const {
    return partition.polling.looks_for && !to_start_.contains(partition.id());
  }

  // Kafka does not let us read the partition, for the reason `why`. It starts again after a while.
  void refused(Partition& partition, const std::string& why);

  // Starts the partitions that wait for it. Does nothing while all are paused.
  // Blocks: about a second at most.
  void turn();

  void pause(Partition& partition);
  void resume(Partition& partition);

  // Pauses all that run; no other starts until allow().
  void pause_all();
  void allow() { all_paused_ = false; }
  bool all_paused() const { return all_paused_; }
  std::size_t paused() const { return paused_; }

  // The partition is over: fetches no more of it.
  void stop(Partition& partition);
  // The same for a partition that the consumer itself gives up.
  void forget_pause(Partition& partition);
  void forget_start(const TopicPartition& partition) { to_start_.erase(partition); }

 private:
  void start_refused_again();

  const Partitions& partitions_;
  kafka::ConsumerInterface& consumer_;
  const Now now_;

  std::set<TopicPartition> to_start_;  // told to librdkafka once a turn
  std::size_t paused_ = 0;
  bool all_paused_ = false;
  Clock::time_point start_not_before_{};
  Clock::time_point refused_again_at_ = Clock::time_point::max();
};

}  // namespace hapax::worker
