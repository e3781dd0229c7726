// Agrees with Kafka and PostgreSQL on the offset at which a partition starts, before it is fetched.
// It has a thread of its own, because Kafka's answers may take long.
//
// A start is decided from facts (start.hpp), taken in PostgreSQL and agreed in PostgreSQL. If
// Kafka's offset would lead the next start to another offset, Kafka gets this one before anything
// runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kafka/consumer.hpp"
#include "store/worker/checkpoints.hpp"
#include "sync/mutex.hpp"
#include "worker/halt_watch.hpp"
#include "worker/held_partitions.hpp"
#include "worker/keeper_session.hpp"
#include "worker/keeper_setup.hpp"
#include "worker/log_watch.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"
#include "worker/start.hpp"
#include "worker/start_questions.hpp"
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
  std::string store_id() const;
  std::string cluster_id() const;

  // Asks for a look at the logs, at once. Any thread.
  void wake();

 private:
  using List = HeldPartitions::List;
  struct Wanted {
    std::shared_ptr<Partition> partition;
    std::chrono::steady_clock::time_point not_before;
  };
  struct Starting {
    std::shared_ptr<Partition> partition;
    StartFacts facts;
    StartAt at;
    store::Taken taken;
  };

  void run(const std::stop_token& stop);
  List take_due();
  bool wants_none() const;
  void serve();
  void start(const List& partitions);
  std::vector<Starting> decide(const List& partitions);
  std::optional<Starting> decide(const std::shared_ptr<Partition>& partition,
                                 const StartQuestions::Answers& answers);
  bool is_stopped(const std::shared_ptr<Partition>& partition,
                  const std::vector<store::Halt>& halts);
  bool may_be_outdated(Partition& partition, const StartHalt& halt);
  void take(std::vector<Starting>& starting);
  std::vector<Starting> tell_kafka(std::vector<Starting>& starting, KafkaLearns when);
  void agree(std::vector<Starting>& starting, List& again);
  void begin(const Starting& starting, std::int64_t highest, store::KnownMessages known);
  store::Taking taking_of(const Partition& partition) const;

  const KeeperSetup& setup_;
  kafka::Consumer& consumer_;
  HeldPartitions& held_;
  const HaltWatch& halts_;
  LogWatch& logs_;
  StaticGroup& static_group_;
  Notices& notices_;

  mutable sync::Mutex mutex_;
  std::condition_variable_any woken_;
  std::vector<Wanted> wanted_ HAPAX_GUARDED_BY(mutex_);
  bool look_is_wanted_ HAPAX_GUARDED_BY(mutex_) = false;  // at the logs
  std::string store_id_ HAPAX_GUARDED_BY(mutex_);
  std::string cluster_id_ HAPAX_GUARDED_BY(mutex_);

  KeeperSession session_;       // used by its thread only, as all below
  store::StoreIdentity store_;  // as the last start read it
  StartQuestions questions_;
  // Of the starts that run now. Posted only if they do not fail, because otherwise all are tried
  // again.
  std::vector<LookWanted> looks_;
  std::jthread thread_;
};

}  // namespace hapax::worker
