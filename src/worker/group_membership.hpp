// Knows whether the group has assigned partitions yet, and whether this worker must join it again.
//
// Owned by the poll thread.
#pragma once

#include <optional>

#include "kafka/consumer_interface.hpp"
#include "worker/dispatcher.hpp"
#include "worker/notices.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class GroupMembership {
 public:
  explicit GroupMembership(kafka::ConsumerInterface& consumer, Now now = &Clock::now)
      : consumer_(consumer), now_(std::move(now)) {}

  // The worker has subscribed, or lost partitions: the group will assign some.
  void waits() { waits_since_ = now_(); }
  void assigned() { waits_since_.reset(); }

  // The group assigned a topic that no route has.
  void has_no_route(const TopicPartition& partition);
  // No member has this partition.
  void has_no_owner(const TopicPartition& partition);

  // Joins again if that is wanted. Precondition: not inside of the group's callbacks.
  void turn();

  // Logs once that the group assigns nothing, if it has not for five seconds.
  void tell_if_slow();

 private:
  kafka::ConsumerInterface& consumer_;
  const Now now_;
  bool join_again_ = false;
  std::optional<Clock::time_point> waits_since_;  // nothing: it has assigned
};

}  // namespace hapax::worker
