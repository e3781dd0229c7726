#include "worker/assignment.hpp"

#include <algorithm>

#include "observe/log.hpp"
#include "worker/log_halt.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

// If another worker has taken a partition, this one waits so long before it takes it again.
// Meanwhile the group decides whose it is.
constexpr milliseconds kTakeAgainFromAnother{3000};

store::Halt halt_in(const Partition& partition, store::Halt halt) {
  halt.partition = partition.id().second;
  if (partition.polling.started) halt.epoch = partition.beginning().epoch;
  return halt;
}

}  // namespace

Assignment::Assignment(const std::vector<flow::Route>& routes, Partitions& partitions,
                       Dispatcher& dispatcher, Fetches& fetches, KeeperInterface& keeper,
                       observe::Health& health, observe::Metrics& metrics)
    : routes_(routes),
      partitions_(partitions),
      dispatcher_(dispatcher),
      fetches_(fetches),
      keeper_(keeper),
      health_(health),
      metrics_(metrics) {
  for (const flow::Route& route : routes) route_index_.emplace(route.topic, route_index_.size());
}

std::vector<TopicPartition> Assignment::assigned(const std::vector<TopicPartition>& ids) {
  std::vector<TopicPartition> without_route;
  std::vector<std::shared_ptr<Partition>> taken;
  for (const TopicPartition& id : ids) {
    if (!route_index_.contains(id.first)) {
      without_route.push_back(id);
      continue;
    }
    taken.push_back(make(id));
    partitions_[id] = taken.back();
    metrics_.partition_assigned(id.first, id.second);
    health_.partition_assigned(id.first, id.second);
  }
  keeper_.acquire(taken, {});
  return without_route;
}

std::vector<std::shared_ptr<Partition>> Assignment::drop(const std::vector<TopicPartition>& ids) {
  std::vector<std::shared_ptr<Partition>> dropped;
  for (const TopicPartition& id : ids) {
    const auto found = partitions_.find(id);
    if (found == partitions_.end()) continue;
    dispatcher_.drop(*found->second);
    fetches_.forget_pause(*found->second);
    dropped.push_back(found->second);
  }
  return dropped;
}

void Assignment::revoked(const TopicPartition& id) {
  // End the old assignment. Otherwise the keeper would go on to take a partition that a notice has
  // just asked for again.
  if (const auto found = partitions_.find(id); found != partitions_.end()) {
    const Partition& partition = *found->second;
    found->second->end();
    remember_last(partition);
    // Another worker may go on with it, and what this one has seen does not count then.
    if (partition.seen_wal()) seen_wal_.at(id).left = partition.beginning().epoch;
  }
  partitions_.erase(id);
  fetches_.forget_start(id);
  halted_.erase(id);
  metrics_.partition_gone(id.first, id.second);
  health_.partition_gone(id.first, id.second);
}

void Assignment::clear() {
  for (const auto& [id, partition] : partitions_) partition->end();
  partitions_.clear();
  waiting_.clear();
}

void Assignment::halt(const HaltWanted& wanted) {
  std::vector<std::shared_ptr<Partition>> stopping;
  for (const auto& [id, partition] : partitions_)
    if (partition == wanted.partition || (wanted.halt.whole_route && id.first == wanted.halt.topic))
      stopping.push_back(partition);
  if (std::ranges::find(stopping, wanted.partition) == stopping.end()) {
    if (!wanted.halt.whole_route) return;  // stopped already
    // A route's halt is kept even if the partition is not ours by now, or has another assignment.
    if (!wanted.recorded) keeper_.halted(halt_in(*wanted.partition, wanted.halt), false);
    if (stopping.empty()) return;
  }
  log_halt(wanted);
  for (const auto& partition : stopping) {
    const store::Halt halt = halt_in(*partition, wanted.halt);
    const bool recorded = wanted.recorded || partition != wanted.partition;
    if (!recorded) metrics_.halted(halt.reason);
    halted_[partition->id()] = halt;
    stop(partition);
    keeper_.halted(halt, recorded);
  }
}

void Assignment::halt_ended(const HaltEnded& ended) {
  if (halted_.erase(ended.partition) == 0) return;
  log::info("resumed", {{"topic", ended.partition.first}, {"partition", ended.partition.second}},
            "an operator has ended the halt, or another worker has had the partition since");
  take(ended.partition, {}, 0);
}

void Assignment::fenced(const Fenced& fenced) {
  const TopicPartition id = fenced.partition->id();
  const auto found = partitions_.find(id);
  if (found == partitions_.end() || found->second != fenced.partition) return;
  if (!fenced.by_restart)  // of which one line tells, for all partitions
    log::warning("fenced",
                 {{"topic", id.first}, {"partition", id.second}, {"by_another", fenced.by_another}},
                 "the checkpoint could not be written: the partition was taken or moved, or "
                 "PostgreSQL lost its tail; starting again from the checkpoint");
  stop(fenced.partition);
  take(id, fenced.by_another ? kTakeAgainFromAnother : milliseconds(0), 0);
}

// `partition` is a copy, because the caller's may be the one in the table, which is erased here.
void Assignment::start_again(std::shared_ptr<Partition> partition, milliseconds after) {
  const std::int64_t read_below = partition->progress().next;
  stop(partition);
  take(partition->id(), after, read_below);
}

std::shared_ptr<Partition> Assignment::make(const TopicPartition& id) const {
  const std::size_t route = route_index_.at(id.first);
  const auto partition = std::make_shared<Partition>(id, routes_[route], route);
  if (const auto last = last_read_.find(id); last != last_read_.end())
    partition->handover.read_before = {last->second};
  if (const auto seen = seen_wal_.find(id); seen != seen_wal_.end())
    partition->handover.seen_wal = seen->second;
  return partition;
}

void Assignment::turn() {
  if (ending_.empty() && waiting_.empty()) return;
  std::erase_if(ending_, [this](const auto& partition) { return !runs(partition); });
  std::erase_if(waiting_, [this](const Waiting& one) {
    if (std::ranges::count(ending_, one.partition->id(), &Partition::id) > 0) return false;
    if (!one.partition->over()) keeper_.acquire({one.partition}, one.after);
    return true;
  });
}

bool Assignment::runs(const std::shared_ptr<Partition>& partition) const {
  return !dispatcher_.wait_idle({partition}, Clock::time_point());
}

void Assignment::stop(const std::shared_ptr<Partition>& partition) {
  dispatcher_.drop(*partition);
  if (runs(partition)) ending_.push_back(partition);
  fetches_.stop(*partition);
  remember_last(*partition);
  partitions_.erase(partition->id());
}

void Assignment::take(const TopicPartition& id, milliseconds after, std::int64_t read_below) {
  const auto partition = make(id);
  partition->handover.read_below = read_below;
  partitions_[id] = partition;
  waiting_.push_back({partition, after});
  turn();
}

void Assignment::remember_last(const Partition& partition) {
  if (partition.polling.last) last_read_.insert_or_assign(partition.id(), *partition.polling.last);
  if (const auto seen = partition.seen_wal()) seen_wal_.insert_or_assign(partition.id(), *seen);
}

}  // namespace hapax::worker
