// Static members come back without a rebalance. If the group's leader came back so, no member knows
// that a topic has grown meanwhile. Its new partitions would have no owner until a member leaves or
// joins.
//
// Thread safety: all of it but look(), which one thread calls.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "sync/mutex.hpp"
#include "worker/notices.hpp"

namespace hapax::worker {

class StaticGroup {
 public:
  // `topics`: of a static member; empty if this worker is none.
  StaticGroup(std::string group, std::vector<std::string> topics, kafka::Consumer& consumer,
              Notices& notices)
      : group_(std::move(group)),
        topics_(std::move(topics)),
        consumer_(consumer),
        notices_(notices) {}

  // The group has assigned something.
  void joined();

  // When the group is stable, looks once in a process, and posts NobodyHas. Blocks: seconds if
  // Kafka is away.
  void look();

 private:
  const std::string group_;
  const std::vector<std::string> topics_;
  kafka::Consumer& consumer_;
  Notices& notices_;
  sync::Mutex mutex_;
  bool joined_ HAPAX_GUARDED_BY(mutex_) = false;
  std::optional<std::chrono::steady_clock::time_point> due_ HAPAX_GUARDED_BY(mutex_){};
};

}  // namespace hapax::worker
