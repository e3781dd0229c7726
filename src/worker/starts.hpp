// The partitions that shall start, before they are fetched. They wait here until they are due, and
// a Starter starts them. It has a thread of its own, because Kafka's answers may take long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sync/mutex.hpp"
#include "worker/log_watch.hpp"
#include "worker/starter.hpp"
#include "worker/static_group.hpp"

namespace hapax::worker {

class Starts {
 public:
  // Its thread also looks at the logs and at the group of a static member.
  Starts(const KeeperSetup& setup, kafka::Consumer& consumer, HeldPartitions& held,
         const HaltWatch& halts, LogWatch& logs, StaticGroup& static_group, Notices& notices,
         PostgresState& postgres);

  // Begins the thread. Call it once.
  void start();
  // Ends the thread. Blocks: until PostgreSQL and Kafka have answered what they were asked.
  void stop() { thread_ = {}; }

  // See KeeperInterface. Any thread.
  void acquire(const HeldPartitions::List& partitions, std::chrono::milliseconds after);
  std::string store_id() const { return starter_.store_id(); }
  std::string cluster_id() const { return starter_.cluster_id(); }

  // Asks for a look at the logs, at once. Any thread.
  void wake();

 private:
  using List = HeldPartitions::List;
  struct Wanted {
    std::shared_ptr<Partition> partition;
    std::chrono::steady_clock::time_point not_before;
  };

  void run(const std::stop_token& stop);
  List take_due();
  bool wants_none();
  void serve();

  HeldPartitions& held_;
  LogWatch& logs_;
  StaticGroup& static_group_;

  sync::Mutex mutex_;
  std::condition_variable_any woken_;
  std::vector<Wanted> wanted_ HAPAX_GUARDED_BY(mutex_);
  bool look_is_wanted_ HAPAX_GUARDED_BY(mutex_) = false;  // at the logs

  Starter starter_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::worker
