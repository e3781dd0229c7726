// Decides about a partition if the consumer cannot read its log, or if the log may not be the one
// that it began with. The partition halts, starts again, or is asked for again.
//
// Owned by the poll thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "kafka/consumer.hpp"
#include "worker/assignment.hpp"
#include "worker/fetches.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class PartitionErrors {
 public:
  // `earliest_when_out_of_range`: kafka.out_of_range. The references outlive this.
  PartitionErrors(const std::string& worker_name, bool earliest_when_out_of_range,
                  const Partitions& partitions, Assignment& assignment, Fetches& fetches,
                  Now now = &Clock::now);

  // The consumer reports an error. If the error has an offset, the partition halts before a later
  // record is received, so that the watermark cannot pass it.
  void serve(const kafka::PartitionError& error);

  // The partition may read another log than it began with. It starts again, and its start compares
  // them.
  void serve(const LogDoubted& doubted);

  // Whether an offset that this worker read in the assignment before now has another record. If so,
  // the partition is halted. Precondition: `partition` is running, `record` is its next.
  bool log_was_rewritten(const std::shared_ptr<Partition>& partition, const kafka::Record& record);

  // The group has taken this one away.
  void forget(const TopicPartition& id) {
    asked_again_.erase(id);
    doubted_.erase(id);
  }

 private:
  void serve_unread(const kafka::PartitionError& error);
  void doubt(const std::shared_ptr<Partition>& partition);
  bool asks_again(const std::shared_ptr<Partition>& partition, const std::string& error);

  const std::string& worker_name_;
  const bool earliest_when_out_of_range_;
  const Partitions& partitions_;
  Assignment& assignment_;
  Fetches& fetches_;
  const Now now_;

  std::map<TopicPartition, Clock::time_point> asked_again_;  // when, about an offset out of range
  // Partitions whose log may be another one, until a record shows which it is.
  std::set<TopicPartition> doubted_;
};

}  // namespace hapax::worker
