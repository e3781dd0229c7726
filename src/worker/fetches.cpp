#include "worker/fetches.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hapax::worker {
namespace {

constexpr std::chrono::milliseconds kBetweenRestarts{1000};
constexpr std::chrono::seconds kRefusedAgainAfter{5};

// If records were read before, they are read again first, to compare them.
std::int64_t fetched_from(const Partition& partition) {
  if (const auto& record = partition.polling.looks_for) return record->offset;
  const std::int64_t next = partition.progress().next;
  const auto& before = partition.handover.read_before;
  return before.empty() ? next : std::min(next, before.front().offset);
}

bool is_fetched(const Partition& partition) {
  return !partition.over() && (partition.polling.started || partition.polling.looks_for);
}

}  // namespace

Fetches::Fetches(const Partitions& partitions, kafka::ConsumerInterface& consumer, Now now)
    : partitions_(partitions), consumer_(consumer), now_(std::move(now)) {}

void Fetches::started(const TopicPartition& partition) {
  if (const auto found = partitions_.find(partition); found != partitions_.end())
    found->second->polling.looks_for.reset();
  to_start_.insert(partition);
}

void Fetches::refused(Partition& partition, const std::string& why) {
  partition.polling.refused = why;
  refused_again_at_ = now_() + kRefusedAgainAfter;
}

// librdkafka reports once that it may not read a partition, and nothing when it may again. After a
// new start it reports something in any case, at least the end of the partition.
void Fetches::start_refused_again() {
  if (now_() < refused_again_at_) return;
  refused_again_at_ = Clock::time_point::max();
  for (const auto& [id, partition] : partitions_) {
    if (partition->polling.refused.empty() || partition->over()) continue;
    to_start_.insert(id);
    refused_again_at_ = now_() + kRefusedAgainAfter;
  }
}

// If librdkafka does not move a partition, for example after an offset out of range, all partitions
// must be assigned again. That drops what is fetched ahead, so it happens once a second at most.
void Fetches::turn() {
  start_refused_again();
  if (to_start_.empty() || all_paused_ || now_() < start_not_before_) return;
  const auto positions_of = [&](const auto& wanted) {
    std::vector<kafka::Position> positions;
    for (const auto& [id, partition] : partitions_)
      if (is_fetched(*partition) && wanted(id)) positions.push_back({id, fetched_from(*partition)});
    return positions;
  };
  const auto starting = positions_of([&](const auto& id) { return to_start_.contains(id); });
  for (const kafka::Position& position : starting)
    forget_pause(*partitions_.at(position.partition));
  const auto unmoved = consumer_.start(starting);
  to_start_.clear();
  if (unmoved.empty()) return;
  start_not_before_ = now_() + kBetweenRestarts;
  const auto all = positions_of([](const auto&) { return true; });
  for (const auto& [id, partition] : partitions_) forget_pause(*partition);
  for (const TopicPartition& id : consumer_.restart(all)) to_start_.insert(id);
}

void Fetches::pause(Partition& partition) {
  consumer_.pause({partition.id()});
  if (!std::exchange(partition.polling.paused, true)) ++paused_;
}

void Fetches::resume(Partition& partition) {
  if (!partition.polling.paused) return;
  consumer_.resume(partition.id());
  forget_pause(partition);
}

void Fetches::pause_all() {
  all_paused_ = true;
  std::vector<TopicPartition> running;
  for (const auto& [id, partition] : partitions_) {
    if (partition->over() || !partition->polling.started || partition->polling.paused) continue;
    running.push_back(id);
    // librdkafka may still be at the offset of the assignment before. Only a start moves it.
    if (to_start_.contains(id)) continue;
    partition->polling.paused = true;
    partition->polling.at_end = false;  // the log may grow meanwhile
    ++paused_;
  }
  consumer_.pause(running);
}

void Fetches::stop(Partition& partition) {
  partition.polling.looks_for.reset();
  forget_pause(partition);
  consumer_.pause({partition.id()});
  forget_start(partition.id());
}

void Fetches::forget_pause(Partition& partition) {
  if (std::exchange(partition.polling.paused, false)) --paused_;
}

}  // namespace hapax::worker
