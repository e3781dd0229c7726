// Static members come back without a rebalance. If the group's leader came back so, no member knows
// that a topic has grown meanwhile. Its new partitions would have no owner until a member leaves or
// joins.
#include <utility>

#include "observe/log.hpp"
#include "worker/keeper.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Between joining and looking, and between two looks while the group is not stable.
constexpr milliseconds kUntilStable{5000};
constexpr milliseconds kLookTimeout{2000};

}  // namespace

void Keeper::joined() {
  if (setup_.topics_of_static_member.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(joined_, true)) look_at_group_ = steady_clock::now() + kUntilStable;
}

void Keeper::look_at_group() {
  {
    const std::lock_guard lock(mutex_);
    if (!look_at_group_ || steady_clock::now() < *look_at_group_) return;
    look_at_group_ = steady_clock::now() + kUntilStable;
  }
  try {
    const auto assigned = consumer_.assigned_in_group(setup_.group, kLookTimeout);
    if (!assigned) return;
    std::optional<TopicPartition> nobodys;
    for (const std::string& topic : setup_.topics_of_static_member)
      for (int i = consumer_.partition_count(topic, kLookTimeout) - 1; i >= 0; --i)
        if (!assigned->contains({topic, i})) nobodys.emplace(topic, i);
    if (nobodys) notices_.post(NobodyHas{*nobodys});
  } catch (const std::exception& error) {
    observe::log::debug("group_not_seen", {{"error", error.what()}}, "trying again");
    return;
  }
  const std::lock_guard lock(mutex_);
  look_at_group_.reset();
}

}  // namespace hapax::worker
