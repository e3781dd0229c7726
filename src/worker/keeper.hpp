// Keeps what PostgreSQL knows of this worker's partitions: agrees their starts, writes their
// checkpoints, records and watches halts, so that neither the poll thread nor a lane waits for it.
//
// Two threads: one for starts, which may wait long for Kafka, and one for what must go on
// meanwhile. Each has a session.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kafka/consumer.hpp"
#include "observe/metrics.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/logs.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"
#include "worker/repetitions.hpp"
#include "worker/start.hpp"

namespace hapax::worker {

struct KeeperSetup {
  std::string group;
  std::string worker_name;
  std::function<store::Session()> connect;
  std::chrono::milliseconds checkpoint_interval{1000};
  bool initial_latest = false;
  bool earliest_when_out_of_range = false;
  std::vector<std::string> topics_of_static_member;  // empty where it is none
};

class Keeper final : public KeeperInterface {
 public:
  // Does nothing yet; see start().
  Keeper(KeeperSetup setup, kafka::Consumer& consumer, Notices& notices, PostgresState& postgres,
         observe::Metrics& metrics);
  ~Keeper();

  // Begins its threads. Call it once, before anything below.
  void start();
  // Ends them. Blocks: until PostgreSQL and Kafka have answered what they were asked.
  void stop();

  bool logs_looked_at(std::chrono::steady_clock::time_point since) override;
  std::vector<std::shared_ptr<Partition>> with_another_log(
      const std::vector<std::shared_ptr<Partition>>& partitions,
      std::chrono::milliseconds timeout) const override;
  void acquire(const std::vector<std::shared_ptr<Partition>>& partitions,
               std::chrono::milliseconds after) override;
  void halted(const store::Halt& halt, bool recorded) override;
  std::string store_id() const override;
  std::string cluster_id() const override;

  // The group has assigned something. Posts NobodyHas where a static member came back to a group
  // that does not know of new partitions; looks once in a process.
  void joined();

  // Writes the last checkpoints of partitions that no lane works on any more and the halts that are
  // not recorded yet, marks a clean leave of those that are drained, and forgets them all. What
  // PostgreSQL does not take, the next owner repeats as duplicates. False where it was away before,
  // or does not answer in time: this object's end may then wait for it without bound.
  // Blocks: at most `timeout`, whatever PostgreSQL does. One thread at a time.
  // `idle`: no lane works on any of them; a leave is clean only then.
  bool release(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle,
               std::chrono::milliseconds timeout);

  // For so long the thread that writes checkpoints has had no answer from PostgreSQL. Any thread.
  std::chrono::steady_clock::duration silence() const {
    const std::chrono::steady_clock::duration silent =
        std::chrono::steady_clock::now() - busy_since_.load();
    return std::max(silent, std::chrono::steady_clock::duration::zero());
  }

  // The partitions that are started, with the epochs that they were taken under. Any thread.
  std::map<TopicPartition, std::int64_t> held_epochs() const;

 private:
  struct Wanted {
    std::shared_ptr<Partition> partition;
    std::chrono::steady_clock::time_point not_before;
  };

  struct Release {
    std::vector<std::shared_ptr<Partition>> partitions;
    bool idle = false;
    bool done = false;  // guarded by mutex_
  };

  void run(const std::stop_token& stop);
  void serve_release();
  void leave(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle);
  void run_starts(const std::stop_token& stop);
  void serve_starts();
  void start_delayed(const std::exception& error);
  void start(const std::vector<std::shared_ptr<Partition>>& partitions);
  // What Kafka and PostgreSQL tell of partitions that shall start.
  struct Known {
    std::map<TopicPartition, kafka::Committed> committed;
    std::map<TopicPartition, kafka::OffsetRange> ranges;
    std::map<std::string, std::string> topic_ids;
    std::map<TopicPartition, store::CheckpointRow> rows;
    store::KnownLogs logs;

    // Its broker was not among those that answered for many at once.
    bool was_asked_alone(const TopicPartition& id) const {
      return committed.contains(id) && topic_ids.contains(id.first) && !ranges.contains(id);
    }
  };
  struct Starting {
    std::shared_ptr<Partition> partition;
    StartFacts facts;
    StartAt at;
    store::Taken taken;
  };
  Known ask(const std::vector<std::shared_ptr<Partition>>& partitions);
  StartFacts facts_of(const Partition& partition, const Known& known);
  std::vector<Starting> decide(const std::vector<std::shared_ptr<Partition>>& partitions);
  bool is_stopped(const std::shared_ptr<Partition>& partition,
                  const std::vector<store::Halt>& halts);
  store::Halt halt_of(const Partition& partition) const;
  bool may_be_outdated(Partition& partition, const StartHalt& halt);
  std::optional<Starting> decide(const std::shared_ptr<Partition>& partition, const Known& known);
  void take(std::vector<Starting>& starting);
  static bool is_anothers(const StartFacts& facts);
  void agree(std::vector<Starting>& starting, const std::string& incarnation,
             std::vector<std::shared_ptr<Partition>>& again);
  void begin(const Starting& starting, const std::string& incarnation, std::int64_t highest,
             store::Ahead ahead);
  void serve_halts();
  void find_fenced();
  void look_at_group();
  void look_at_logs();
  void look_for_postgres();
  std::vector<store::Halt> unrecorded() const;
  void checkpoint(const std::vector<std::shared_ptr<Partition>>& partitions);
  bool taken_by_another(const Partition& partition);
  void missed(const std::shared_ptr<Partition>& partition);
  std::vector<std::shared_ptr<Partition>> held() const;
  store::Session connect();
  store::Session& session(std::optional<store::Session>& kept);
  void broke(const char* what, const store::DatabaseError& error);
  store::Taking taking_of(const Partition& partition) const;
  kafka::Provenance provenance(const Starting& starting) const;

  const KeeperSetup setup_;
  kafka::Consumer& consumer_;
  Notices& notices_;
  PostgresState& postgres_;
  observe::Metrics& metrics_;

  mutable std::mutex mutex_;
  std::condition_variable_any woken_;
  std::vector<Wanted> wanted_;  // guarded by mutex_, as to joined_
  bool halt_is_new_ = false;    // since to_record_ was last tried
  std::map<TopicPartition, std::shared_ptr<Partition>> held_;
  std::vector<store::Halt> to_record_;
  std::map<TopicPartition, store::Halt> halted_;  // recorded, not ended
  store::StoreIdentity store_;
  std::string cluster_id_;
  std::optional<std::chrono::steady_clock::time_point> look_at_group_;
  bool joined_ = false;
  std::shared_ptr<Release> release_;  // to be served
  std::condition_variable released_;

  bool look_wanted_ = false;                              // guarded by mutex_
  std::chrono::steady_clock::time_point look_at_logs_{};  // starts' thread only
  Repetitions delays_;                                    // starts' thread only
  std::atomic<std::chrono::steady_clock::time_point> looked_at_logs_{
      std::chrono::steady_clock::time_point{}};

  std::optional<store::Session> starts_session_;  // starts' thread only
  std::optional<store::Session> session_;         // the other's
  std::atomic<std::chrono::steady_clock::time_point> busy_since_{
      std::chrono::steady_clock::time_point::max()};

  std::jthread thread_;
  std::jthread starts_;
};

}  // namespace hapax::worker
