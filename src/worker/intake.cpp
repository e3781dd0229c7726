#include "worker/intake.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "flow/crash_point.hpp"

namespace hapax::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kLookForSpace{500};
// The poll thread waits so long for space. Then it pauses the partition, because the group and
// other work wait for the poll thread.
constexpr milliseconds kMostForSpace{50};
// A partition may be ahead of its watermark by so many times worker.queue.messages.
constexpr std::size_t kReach = 10;
// In quarters of the queue. At kFull all partitions are paused, and below kGoOn they go on.
constexpr std::size_t kFull = 8, kGoOn = 7;

// Adds what PostgreSQL knew of this message's runs when the partition started.
Item item_of(const Partition& partition, std::unique_ptr<kafka::Record> record, const Now& now) {
  Item item;
  item.received = now();
  const auto& attempts = partition.beginning().known.attempts;
  if (const auto prior = attempts.find(record->message().offset()); prior != attempts.end()) {
    item.remembered = true;
    item.attempts = prior->second.count;
    item.failing = milliseconds(prior->second.lasting_ms);
    item.not_before = item.received + milliseconds(prior->second.wait_ms);
  }
  item.record = std::move(record);
  return item;
}

}  // namespace

Intake::Intake(const config::Worker& settings, const Partitions& partitions, Dispatcher& dispatcher,
               Fetches& fetches, std::vector<observe::RouteMetrics> routes, OrderHash order_hash,
               Now now, Sleep sleep)
    : settings_(settings),
      partitions_(partitions),
      dispatcher_(dispatcher),
      fetches_(fetches),
      routes_(std::move(routes)),
      order_hash_(order_hash),
      now_(std::move(now)),
      sleep_(std::move(sleep)) {}

void Intake::sleep_for_real(microseconds time) { std::this_thread::sleep_for(time); }

void Intake::receive(const std::shared_ptr<Partition>& partition,
                     std::unique_ptr<kafka::Record> record) {
  const Message& message = record->message();
  const std::size_t bytes = record->bytes();
  const auto timestamp_ms = store::timestamp_ms(message);
  if (!partition->receive(message.offset(), bytes, now_(), timestamp_ms)) return;
  flow::crash_point("received");
  partition->polling.refused.clear();
  partition->polling.at_end = false;
  partition->polling.leader_epoch = message.leader_epoch();
  partition->polling.last = ReadRecord{partition->beginning().generation, message.offset(),
                                       timestamp_ms, bytes, partition->beginning().same_topic};
  routes_[partition->route_index()].received(bytes);
  use_ += {1, bytes};
  const std::uint64_t order = order_key(message);
  dispatcher_.add(partition, order, item_of(*partition, std::move(record), now_));
  bound_queue(*partition);
}

void Intake::reached_end(Partition& partition, std::int64_t offset) {
  partition.polling.refused.clear();
  partition.pass(offset);
  partition.polling.at_end = true;
}

std::uint64_t Intake::order_key(const Message& message) {
  switch (settings_.ordering) {
    case config::Ordering::partition: return 0;
    case config::Ordering::key:
      // If two keys have one hash, they only wait for each other. Messages with a null key have no
      // order.
      if (message.key()) return order_hash_(*message.key());
      [[fallthrough]];
    case config::Ordering::none: break;
  }
  return ++unordered_ * 0x9E3779B97F4A7C15ULL;
}

Intake::QueueUse Intake::count_use() const {
  QueueUse all;
  for (const auto& [id, partition] : partitions_) {
    if (!partition->polling.started) continue;
    const Partition::Progress progress = partition->progress();
    all += {progress.messages, progress.bytes};
  }
  return all;
}

// Whether `use` has reached the queue divided by `shares`.
bool Intake::is_over(const QueueUse& use, std::size_t shares) const {
  return use.messages >= std::max<std::size_t>(1, settings_.queue.messages / shares) ||
         use.bytes >= settings_.queue.bytes / shares;
}

// Whether a partition is as far ahead of its watermark as the reach divided by `parts`.
bool Intake::is_too_far_ahead(const Partition::Progress& progress, std::size_t parts) const {
  return progress.span >= std::max(kReach, kReach * settings_.queue.messages / parts);
}

// Whether the messages in hand are so many quarters of the queue, or more.
bool Intake::fills(std::size_t quarters) const {
  return 4 * use_.messages >= quarters * settings_.queue.messages ||
         4 * use_.bytes >= quarters * settings_.queue.bytes;
}

// Waits while the lanes are busy. False if that frees no room.
bool Intake::wait_for_queue_space() {
  const auto until = now_() + kMostForSpace;
  while (is_over(use_ = count_use(), 1)) {
    if (!dispatcher_.has_ready() || now_() >= until) return false;
    sleep_(kLookForSpace);
  }
  return true;
}

void Intake::bound_queue(Partition& partition) {
  if (fills(kFull)) return fetches_.pause_all();
  if (partition.polling.paused) return;
  const Partition::Progress progress = partition.progress();
  partition.polling.too_far = is_too_far_ahead(progress, 1);
  if (!partition.polling.too_far) {
    const std::size_t shares = std::max<std::size_t>(1, partitions_.size());
    // Within its share a partition never waits, because another one's messages may fill the queue
    // for hours.
    if (!is_over(use_, 1) || !is_over({progress.messages, progress.bytes}, shares) ||
        wait_for_queue_space())
      return;
  }
  fetches_.pause(partition);
}

void Intake::turn() {
  use_ = count_use();
  resume_paused();
}

// With hysteresis, because a pause is expensive. But if the queue alone was the reason, a message
// that waits for a retry must not keep the partition paused.
void Intake::resume_paused() {
  if (fetches_.all_paused() && fills(kGoOn)) return;
  fetches_.allow();
  if (fetches_.paused() == 0) return;
  const std::size_t shares = 2 * std::max<std::size_t>(1, partitions_.size());
  for (const auto& [id, partition] : partitions_) {
    if (!partition->polling.paused) continue;
    const Partition::Progress progress = partition->progress();
    const std::size_t parts = partition->polling.too_far ? 2 : 1;
    if (!is_over({progress.messages, progress.bytes}, shares) && !is_too_far_ahead(progress, parts))
      fetches_.resume(*partition);
  }
}

}  // namespace hapax::worker
