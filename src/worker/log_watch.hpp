// Looks whether each running partition still reads the log that it began with. If a topic is
// deleted and made again under the same name, librdkafka goes on in the new one. If it was
// disconnected meanwhile, it reports nothing. But Kafka forgets the group's offsets of a deleted
// topic.
//
// Thread safety: all of it but look(), which one thread calls.
#pragma once

#include <atomic>
#include <chrono>

#include "kafka/consumer.hpp"
#include "worker/held_partitions.hpp"
#include "worker/notices.hpp"

namespace hapax::worker {

class LogWatch {
 public:
  LogWatch(const HeldPartitions& held, kafka::Consumer& consumer, Notices& notices)
      : held_(held), consumer_(consumer), notices_(notices) {}

  // See KeeperInterface. If it is false, the caller makes the thread call look() soon.
  bool looked_at(std::chrono::steady_clock::time_point since);

  // See KeeperInterface::with_another_log().
  HeldPartitions::List with_another_log(const HeldPartitions::List& partitions,
                                        std::chrono::milliseconds timeout) const;

  // If one is due or wanted: looks, and posts LogDoubted. Blocks: seconds if Kafka is away.
  void look();

 private:
  const HeldPartitions& held_;
  kafka::Consumer& consumer_;
  Notices& notices_;
  std::atomic<bool> wanted_{false};
  // The last look that found nothing wrong: when it began, and when Kafka had answered all of it.
  std::atomic<std::chrono::steady_clock::time_point> looked_{
      std::chrono::steady_clock::time_point{}};
  std::atomic<std::chrono::steady_clock::time_point> answered_{
      std::chrono::steady_clock::time_point{}};
  std::chrono::steady_clock::time_point next_{};  // used by the thread that looks
};

}  // namespace hapax::worker
