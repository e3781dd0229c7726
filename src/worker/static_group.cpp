#include "worker/static_group.hpp"

#include <utility>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Between joining and looking, and between two looks while the group is not stable.
constexpr milliseconds kUntilStable{5000};
constexpr milliseconds kLookTimeout{2000};

}  // namespace

void StaticGroup::joined() {
  if (topics_.empty()) return;
  const sync::Lock lock(mutex_);
  if (!std::exchange(joined_, true)) due_ = steady_clock::now() + kUntilStable;
}

void StaticGroup::look() {
  {
    const sync::Lock lock(mutex_);
    if (!due_ || steady_clock::now() < *due_) return;
    due_ = steady_clock::now() + kUntilStable;
  }
  try {
    const auto assigned = consumer_.assigned_in_group(group_, kLookTimeout);
    if (!assigned) return;
    std::optional<TopicPartition> nobodys;
    for (const std::string& topic : topics_)
      for (int i = consumer_.partition_count(topic, kLookTimeout) - 1; i >= 0; --i)
        if (!assigned->contains({topic, i})) nobodys.emplace(topic, i);
    if (nobodys) notices_.post(NobodyHas{*nobodys});
  } catch (const std::exception& error) {
    observe::log::debug("group_not_seen", {{"error", error.what()}}, "trying again");
    return;
  }
  const sync::Lock lock(mutex_);
  due_.reset();
}

}  // namespace hapax::worker
