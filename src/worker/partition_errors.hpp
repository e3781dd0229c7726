// What becomes of a partition whose log the consumer cannot read, or may not be the log that it
// began with: it halts, starts again, or is asked for again.
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

  // The consumer reports an error. If it stands at an offset, the partition halts before anything
  // behind it is received, so that the watermark cannot pass it.
  void serve(const kafka::PartitionError& error);

  // The partition may read another log than it began with: it starts again, which compares them.
  void serve(const LogDoubted& doubted);

  // Whether another record stands where this worker read one in the assignment before. If so, the
  // partition is halted. Precondition: `partition` is running, `record` is its next.
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
  std::set<TopicPartition> doubted_;  // whose log may be another one, until a record has told
};

}  // namespace hapax::worker
