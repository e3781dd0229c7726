// The steps of starts that run together. Each is decided from facts (start.hpp), taken in
// PostgreSQL and agreed in PostgreSQL. If Kafka's offset would lead the next start to another
// offset, Kafka gets this one before anything runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "store/worker/checkpoints.hpp"
#include "sync/mutex.hpp"
#include "worker/halt_watch.hpp"
#include "worker/held_partitions.hpp"
#include "worker/keeper_session.hpp"
#include "worker/keeper_setup.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"
#include "worker/start.hpp"
#include "worker/start_questions.hpp"

namespace hapax::worker {

// The wait after a start that could not be agreed.
constexpr std::chrono::milliseconds kStartAgain{500};

// Thread safety: none, but for store_id() and cluster_id(). Blocks: until PostgreSQL and Kafka have
// answered.
class Starter {
 public:
  using List = HeldPartitions::List;
  // Asks to try these partitions again, after that time.
  using Again = std::function<void(const List& partitions, std::chrono::milliseconds after)>;

  // All outlive this.
  Starter(const KeeperSetup& setup, kafka::Consumer& consumer, HeldPartitions& held,
          const HaltWatch& halts, Notices& notices, PostgresState& postgres, Again again);

  // Starts the partitions, or asks for another try of those that cannot start now. Returns false if
  // an error ended it: the log tells of it, and the caller tries those again that are not held.
  bool start(const List& partitions);

  // There is nothing to start for a while.
  void rest() { session_.drop(); }

  // As the last start read them. Any thread.
  std::string store_id() const;
  std::string cluster_id() const;

 private:
  struct Starting {
    std::shared_ptr<Partition> partition;
    StartFacts facts;
    StartAt at;
    store::Taken taken;
  };

  void agree_all(const List& partitions);
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
  Notices& notices_;
  const Again again_;

  mutable sync::Mutex mutex_;
  std::string store_id_ HAPAX_GUARDED_BY(mutex_);
  std::string cluster_id_ HAPAX_GUARDED_BY(mutex_);

  KeeperSession session_;
  store::StoreIdentity store_;  // as the last start read it
  store::StoreIdentity found_;  // as the first start of this incarnation read it
  StartQuestions questions_;
  // Of the starts that run now. Posted only if they do not fail, because otherwise all are tried
  // again.
  std::vector<LookWanted> looks_;
};

}  // namespace hapax::worker
