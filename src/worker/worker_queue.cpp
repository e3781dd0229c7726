// How much a worker holds at once. `worker.queue` bounds all partitions together; any one may have
// what is free of it, because librdkafka hands over thousands of one partition before the next.
// When it is full each partition keeps its share and is paused beyond it, so that one that waits
// for a retry cannot starve the others. So at most twice the queue is held, and only then.
//
// A pause is dear: it drops what librdkafka has fetched ahead, and fetching that again takes a turn
// with the broker. While the lanes have all they can do, waiting for them costs nothing instead.
//
// What is settled ahead of an older message takes no room, but a restart would look at it again: a
// partition that is too far ahead of its watermark is paused, too.
#include <thread>

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
  if (partition.polling.paused) return;
  const Partition::Progress progress = partition.progress();
  if (!is_ahead(progress, 1)) {
    const std::size_t shares = std::max<std::size_t>(1, partitions_.size());
    // Within its share it never waits: another's messages may fill the queue for hours.
    if (!is_over(in_hand_, 1) || !is_over({progress.messages, progress.bytes}, shares) ||
        room_comes())
      return;
  }
  consumer_->pause(partition.id());
  partition.polling.paused = true;
  ++paused_;
}

// With hysteresis, for a pause is dear.
void Worker::resume_paused() {
  const std::size_t shares = 2 * std::max<std::size_t>(1, partitions_.size());
  for (const auto& [id, partition] : partitions_) {
    if (!partition->polling.paused) continue;
    const Partition::Progress progress = partition->progress();
    if (!is_over({progress.messages, progress.bytes}, shares) && !is_ahead(progress, 2))
      unpause(*partition);
  }
}

// librdkafka remembers a pause beyond the assignment, and must not be resumed twice.
void Worker::unpause(Partition& partition) {
  if (!partition.polling.paused) return;
  consumer_->resume(partition.id());
  partition.polling.paused = false;
  --paused_;
}

// librdkafka takes whole lists: those that run go on where they are.
void Worker::fetch_all() {
  std::vector<kafka::Position> positions;
  for (const auto& [id, partition] : partitions_) {
    if (partition->over() || !partition->polling.started) continue;
    const std::int64_t next = partition->progress().next;
    const std::optional<ReadRecord>& before = partition->read_before;
    positions.push_back({id, before ? std::min(next, before->offset) : next});
    unpause(*partition);
  }
  consumer_->start(positions);
}

}  // namespace hapax::worker
