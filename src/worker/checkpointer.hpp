// Writes the checkpoints of the partitions that this worker holds, and gives the partitions back.
// Finds partitions that another worker took or an operator moved. In between it serves halts. It
// has a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <set>
#include <thread>

#include "observe/metrics.hpp"
#include "sync/mutex.hpp"
#include "worker/halt_watch.hpp"
#include "worker/held_partitions.hpp"
#include "worker/keeper_session.hpp"
#include "worker/keeper_setup.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"

namespace hapax::worker {

class Checkpointer {
 public:
  Checkpointer(const KeeperSetup& setup, HeldPartitions& held, HaltWatch& halts, Notices& notices,
               PostgresState& postgres, observe::Metrics& metrics);

  // Begins its thread. Call it once, before release().
  void start();
  // Ends it. Blocks: until PostgreSQL has answered what it was asked.
  void stop() { thread_ = {}; }

  // A new halt waits to be recorded: does it at once. Any thread.
  void wake();

  // See Keeper::release(), which has these partitions' halts forgotten first. One thread at a time.
  bool release(const HeldPartitions::List& partitions, bool idle,
               std::chrono::milliseconds timeout);

  // How long its thread has had no answer from PostgreSQL. Any thread.
  std::chrono::steady_clock::duration silence() const;

 private:
  struct Release {
    HeldPartitions::List partitions;
    bool idle = false;
  };

  void run(const std::stop_token& stop);
  void serve_release();
  void serve_halts();
  void leave(const Release& release);
  HeldPartitions::List checkpoint(const HeldPartitions::List& partitions);
  void find_fenced(HeldPartitions::List& fenced);
  std::set<TopicPartition> restarted(const HeldPartitions::List& partitions);
  bool taken_by_another(const Partition& partition);
  void missed(const HeldPartitions::List& partitions);

  const KeeperSetup& setup_;
  HeldPartitions& held_;
  HaltWatch& halts_;
  Notices& notices_;
  PostgresState& postgres_;
  observe::Metrics& metrics_;

  sync::Mutex mutex_;
  std::condition_variable_any woken_;
  std::condition_variable released_;
  bool halt_is_new_ HAPAX_GUARDED_BY(mutex_) = false;                // since halts were last served
  std::shared_ptr<const Release> release_ HAPAX_GUARDED_BY(mutex_);  // to be served
  std::shared_ptr<const Release> served_ HAPAX_GUARDED_BY(mutex_);   // the last one

  KeeperSession session_;  // its thread's only
  std::atomic<std::chrono::steady_clock::time_point> busy_since_{
      std::chrono::steady_clock::time_point::max()};
  std::jthread thread_;
};

}  // namespace hapax::worker
