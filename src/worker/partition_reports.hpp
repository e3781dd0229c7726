// Reports the partitions to metrics and readiness.
//
// Owned by the poll thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kafka/consumer_interface.hpp"
#include "observe/health.hpp"
#include "observe/metrics.hpp"
#include "worker/assignment.hpp"
#include "worker/dispatcher.hpp"
#include "worker/lane.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class PartitionReports {
 public:
  // The references outlive this.
  PartitionReports(const Partitions& partitions, const Assignment& assignment,
                   const Dispatcher& dispatcher, const kafka::ConsumerInterface& consumer,
                   observe::Health& health, observe::Metrics& metrics);

  // Reports the progress of each partition, and logs a partition that a retry blocks.
  void write(const std::vector<std::unique_ptr<Lane>>& lanes);

 private:
  observe::PartitionReport report_running(Partition& partition, observe::PartitionProgress& shown);
  std::optional<std::int64_t> blocked_at(Partition& partition, std::int64_t watermark);

  const Partitions& partitions_;
  const Assignment& assignment_;
  const Dispatcher& dispatcher_;
  const kafka::ConsumerInterface& consumer_;
  observe::Health& health_;
  observe::Metrics& metrics_;

  std::map<TopicPartition, std::int64_t> running_;  // messages that lanes have, by write()
  std::size_t messages_ = 0;                        // in hand, summed up by write()
  std::size_t bytes_ = 0;
};

}  // namespace hapax::worker
