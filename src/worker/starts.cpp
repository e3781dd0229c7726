#include "worker/starts.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// So many partitions start together. All share a few statements, and an error costs little.
constexpr std::size_t kStartsAtOnce = 100;

// The thread looks so often whether a static member must look at its group.
constexpr milliseconds kIdle{1000};

}  // namespace

Starts::Starts(const KeeperSetup& setup, kafka::Consumer& consumer, HeldPartitions& held,
               const HaltWatch& halts, LogWatch& logs, StaticGroup& static_group, Notices& notices,
               PostgresState& postgres)
    : held_(held),
      logs_(logs),
      static_group_(static_group),
      starter_(setup, consumer, held, halts, notices, postgres,
               [this](const List& partitions, milliseconds after) { acquire(partitions, after); }) {
}

void Starts::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Starts::acquire(const List& partitions, milliseconds after) {
  const sync::Lock lock(mutex_);
  for (const auto& partition : partitions)
    if (std::ranges::find(wanted_, partition, &Wanted::partition) == wanted_.end())
      wanted_.push_back({partition, steady_clock::now() + after});
  woken_.notify_all();
}

void Starts::wake() {
  const sync::Lock lock(mutex_);
  look_is_wanted_ = true;
  woken_.notify_all();
}

void Starts::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    serve();
    static_group_.look();
    {
      const sync::Lock lock(mutex_);
      look_is_wanted_ = false;
    }
    logs_.look();
    auto until = steady_clock::now() + kIdle;
    sync::Lock lock(mutex_);
    const std::size_t waiting = wanted_.size();
    for (const Wanted& wanted : wanted_) until = std::min(until, wanted.not_before);
    woken_.wait_until(lock.waitable(), stop, until, [&]() HAPAX_REQUIRES(mutex_) {
      return wanted_.size() != waiting || look_is_wanted_;
    });
  }
}

// Takes some at a time. If a rebalance or an error ends the rest, the ones before stay started.
Starts::List Starts::take_due() {
  const sync::Lock lock(mutex_);
  std::erase_if(wanted_, [](const Wanted& wanted) { return wanted.partition->over(); });
  List due;
  for (const Wanted& wanted : wanted_)
    if (wanted.not_before <= steady_clock::now() && due.size() < kStartsAtOnce)
      due.push_back(wanted.partition);
  const std::set<std::shared_ptr<Partition>> taken(due.begin(), due.end());
  std::erase_if(wanted_, [&](const Wanted& wanted) { return taken.contains(wanted.partition); });
  return due;
}

bool Starts::wants_none() {
  const sync::Lock lock(mutex_);
  return wanted_.empty();
}

// Tries the starts that are due. Those that fail are tried again later.
void Starts::serve() {
  List due = take_due();
  if (due.empty()) {
    if (wants_none()) starter_.rest();
    return;
  }
  if (starter_.start(due)) return;
  std::erase_if(due, [&](const auto& partition) { return held_.has(partition); });
  acquire(due, kStartAgain);
}

}  // namespace hapax::worker
