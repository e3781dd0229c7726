// How much a worker holds at once. `worker.queue` bounds all partitions together; any one may have
// what is free of it, because librdkafka hands over thousands of one partition before the next.
// When it is full each partition keeps its share and is paused beyond it, so that one that waits
// for a retry cannot starve the others. At twice the queue all partitions are paused, so a worker
// holds at most that and one message more, however many partitions it has.
//
// A pause is dear: it drops what librdkafka has fetched ahead, and fetching that again takes a turn
// with the broker. While the lanes have all they can do, waiting for them costs nothing instead.
//
// What is settled ahead of an older message takes no room, but a restart would look at it again: a
// partition that is too far ahead of its watermark is paused, too.
#include <thread>
#include <utility>

#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kLookForRoom{500};
// So long the group and everything else may wait for the poll thread; then the partition is paused.
constexpr milliseconds kMostForRoom{50};
// So many times worker.queue.messages a partition may be ahead of its watermark.
constexpr std::size_t kReach = 10;
constexpr milliseconds kBetweenRestarts{1000};
// Quarters of the queue: all are paused, and go on.
constexpr std::size_t kFull = 8, kGoOn = 7;

}  // namespace

Worker::Hand Worker::all_in_hand() const {
  Hand all;
  for (const auto& [id, partition] : partitions_) {
    if (!partition->polling.started) continue;
    const Partition::Progress progress = partition->progress();
    all += {progress.messages, progress.bytes};
  }
  return all;
}

// More than one of so many shares of the queue.
bool Worker::is_over(const Hand& hand, std::size_t shares) const {
  return hand.messages >= std::max<std::size_t>(1, config_.worker.queue.messages / shares) ||
         hand.bytes >= config_.worker.queue.bytes / shares;
}

// Ahead of its watermark by more than one of so many parts of the reach.
bool Worker::is_ahead(const Partition::Progress& progress, std::size_t parts) const {
  return progress.span >= std::max(kReach, kReach * config_.worker.queue.messages / parts);
}

// So many quarters of the queue, or more.
bool Worker::holds(std::size_t quarters) const {
  return 4 * in_hand_.messages >= quarters * config_.worker.queue.messages ||
         4 * in_hand_.bytes >= quarters * config_.worker.queue.bytes;
}

void Worker::pause_all() {
  all_paused_ = true;
  std::vector<TopicPartition> running;
  for (const auto& [id, partition] : partitions_) {
    if (partition->over() || !partition->polling.started || partition->polling.paused) continue;
    partition->polling.paused = true;
    partition->polling.at_end = false;  // more may come to the log meanwhile
    ++paused_;
    running.push_back(id);
  }
  consumer_.pause(running);
}

// Waits while the lanes are busy anyway. False where no room came.
bool Worker::room_comes() {
  const auto until = Clock::now() + kMostForRoom;
  while (is_over(in_hand_ = all_in_hand(), 1)) {
    if (!dispatcher_.has_ready() || Clock::now() >= until) return false;
    std::this_thread::sleep_for(kLookForRoom);
  }
  return true;
}

void Worker::bound_queue(Partition& partition) {
  if (holds(kFull)) return pause_all();
  if (partition.polling.paused) return;
  const Partition::Progress progress = partition.progress();
  if (!is_ahead(progress, 1)) {
    const std::size_t shares = std::max<std::size_t>(1, partitions_.size());
    // Within its share it never waits: another's messages may fill the queue for hours.
    if (!is_over(in_hand_, 1) || !is_over({progress.messages, progress.bytes}, shares) ||
        room_comes())
      return;
  }
  consumer_.pause({partition.id()});
  partition.polling.paused = true;
  ++paused_;
}

// With hysteresis, for a pause is dear.
void Worker::resume_paused() {
  if (all_paused_ && holds(kGoOn)) return;
  all_paused_ = false;
  if (paused_ == 0) return;
  const std::size_t shares = 2 * std::max<std::size_t>(1, partitions_.size());
  for (const auto& [id, partition] : partitions_) {
    if (!partition->polling.paused) continue;
    const Partition::Progress progress = partition->progress();
    if (!is_over({progress.messages, progress.bytes}, shares) && !is_ahead(progress, 2))
      unpause(*partition);
  }
}

void Worker::unpause(Partition& partition) {
  if (!partition.polling.paused) return;
  consumer_.resume(partition.id());
  forget_pause(partition);
}

void Worker::forget_pause(Partition& partition) {
  if (!std::exchange(partition.polling.paused, false)) return;
  --paused_;
}

// Fetches the partitions whose start was agreed since the last turn. One that librdkafka does not
// move, as after an offset out of range, needs a new assignment of all. That drops what is fetched
// ahead, so it happens once a second at most.
void Worker::fetch_started() {
  if (to_fetch_.empty() || all_paused_ || Clock::now() < fetch_not_before_) return;
  const auto positions_of = [&](const auto& wanted) {
    std::vector<kafka::Position> positions;
    for (const auto& [id, partition] : partitions_)
      if (!partition->over() && partition->polling.started && wanted(id))
        positions.push_back({id, fetched_from(*partition)});
    return positions;
  };
  const auto started = positions_of([&](const auto& id) { return to_fetch_.contains(id); });
  for (const kafka::Position& position : started) forget_pause(*partitions_.at(position.partition));
  const auto refused = consumer_.start(started);
  to_fetch_.clear();
  if (refused.empty()) return;
  fetch_not_before_ = Clock::now() + kBetweenRestarts;
  const auto all = positions_of([](const auto&) { return true; });
  for (const auto& [id, partition] : partitions_) forget_pause(*partition);
  for (const TopicPartition& id : consumer_.restart(all)) to_fetch_.insert(id);
}

std::int64_t Worker::fetched_from(const Partition& partition) {
  const std::int64_t next = partition.progress().next;
  const std::optional<ReadRecord>& before = partition.read_before;
  return before ? std::min(next, before->offset) : next;
}

}  // namespace hapax::worker
