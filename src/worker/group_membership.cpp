#include "worker/group_membership.hpp"

#include <exception>
#include <utility>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

constexpr std::chrono::seconds kGroupIsSlow{5};

}  // namespace

void GroupMembership::has_no_route(const TopicPartition& partition) {
  log::warning("not_ours", {{"topic", partition.first}, {"partition", partition.second}},
               "the group assigned a topic that no route has, as it does to a static member that "
               "came back without it. The worker joins again, so that the group assigns again");
  join_again_ = true;
}

void GroupMembership::has_no_owner(const TopicPartition& partition) {
  log::warning("unassigned", {{"topic", partition.first}, {"partition", partition.second}},
               "the group is stable and no member has this partition: joining it again, so that "
               "it assigns again");
  join_again_ = true;
}

void GroupMembership::turn() {
  if (!std::exchange(join_again_, false)) return;
  try {
    consumer_.rejoin();
  } catch (const std::exception& error) {
    log::warning("rejoin_failed", {{"error", error.what()}}, "the next rebalance assigns it");
  }
}

// If the group assigns nothing for long, logs a reason. A killed worker stays a member until its
// session ends, and the group waits for it.
void GroupMembership::tell_if_slow() {
  if (!waits_since_ || now_() - *waits_since_ < kGroupIsSlow) return;
  waits_since_.reset();
  log::info("waiting_for_group", {},
            "the group assigns nothing yet. Kafka may wait for a member that died, at most its "
            "session.timeout.ms, or for members that are still leaving");
}

}  // namespace hapax::worker
