// Receives records and puts each into its order key's queue. Keeps the queue bounded.
//
// `worker.queue` bounds all partitions together. Any partition may use what is free, because
// librdkafka delivers thousands of records of one partition before the next. If the queue is full,
// each partition that has more than its share is paused. So a partition that waits for a retry
// cannot starve the others. At twice the queue all partitions are paused. So a worker holds at most
// that and one message more, however many partitions it has.
//
// A pause is expensive (see Fetches). If all lanes are busy, it is cheaper to wait for them.
//
// A message that settled ahead of an older one takes no room. But a restart would read it again. So
// a partition that is too far ahead of its watermark is paused, too.
//
// Owned by the poll thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "config/config.hpp"
#include "observe/metrics.hpp"
#include "worker/dispatcher.hpp"
#include "worker/fetches.hpp"
#include "worker/order_hash.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class Intake {
 public:
  using Sleep = std::function<void(std::chrono::microseconds)>;
  static void sleep_for_real(std::chrono::microseconds time);

  // `routes`: by route index. `sleep`: waits for the lanes. The references outlive this.
  Intake(const config::Worker& settings, const Partitions& partitions, Dispatcher& dispatcher,
         Fetches& fetches, std::vector<observe::RouteMetrics> routes, OrderHash order_hash,
         Now now = &Clock::now, Sleep sleep = sleep_for_real);

  // Queues a record for the lanes, unless its offset is in hand already. Pauses the partition, or
  // all, if there is no room for more. Precondition: `partition` is running.
  // Blocks: 50 ms at most, while the queue is full and the lanes are busy.
  void receive(const std::shared_ptr<Partition>& partition, std::unique_ptr<kafka::Record> record);

  // The partition has no more records until its log grows. `offset`: one more than its last.
  void reached_end(Partition& partition, std::int64_t offset);

  // Counts the messages in hand, and resumes the partitions that have room again.
  void turn();

 private:
  // Messages that are received and not settled.
  struct QueueUse {
    std::size_t messages = 0;
    std::size_t bytes = 0;
    void operator+=(const QueueUse& more) {
      messages += more.messages;
      bytes += more.bytes;
    }
  };
  std::uint64_t order_key(const Message& message);
  QueueUse count_use() const;
  bool is_over(const QueueUse& use, std::size_t shares) const;
  bool is_too_far_ahead(const Partition::Progress& progress, std::size_t parts) const;
  bool fills(std::size_t quarters) const;
  bool wait_for_queue_space();
  void bound_queue(Partition& partition);
  void resume_paused();

  const config::Worker& settings_;
  const Partitions& partitions_;
  Dispatcher& dispatcher_;
  Fetches& fetches_;
  std::vector<observe::RouteMetrics> routes_;
  const OrderHash order_hash_;
  const Now now_;
  const Sleep sleep_;

  QueueUse use_;  // at the last turn, plus all that came since: never too low
  std::uint64_t unordered_ = 0;
};

}  // namespace hapax::worker
