// The worker: one poll thread that reads Kafka, lanes that process, a keeper that accounts.
//
// run() is the house's hallway: poll → receive → (lanes settle) → checkpoint → commit. Everything
// in this class belongs to the poll thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "flow/route.hpp"
#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "observe/metrics.hpp"
#include "worker/assignment.hpp"
#include "worker/caution.hpp"
#include "worker/dead_letter_publisher.hpp"
#include "worker/dispatcher.hpp"
#include "worker/fetches.hpp"
#include "worker/group_membership.hpp"
#include "worker/handler_watchdog.hpp"
#include "worker/intake.hpp"
#include "worker/kafka_health.hpp"
#include "worker/keeper.hpp"
#include "worker/lane.hpp"
#include "worker/notices.hpp"
#include "worker/offset_commits.hpp"
#include "worker/partition_errors.hpp"
#include "worker/partition_reports.hpp"
#include "worker/partitions.hpp"
#include "worker/replays.hpp"
#include "worker/retention.hpp"

namespace hapax::worker {

// Set by a signal handler: drain and leave.
using StopSignal = std::atomic<int>;

enum class Ended {
  stopped,          // by StopSignal
  gave_up_waiting,  // the same, but a handler, Kafka or PostgreSQL does not answer: destroying the
                    // Worker would wait for it, so leave the process with _Exit
  handlers_run,     // the same, and what does not answer is a handler: leave with _Exit
  handler_hangs,    // a handler ran longer than worker.handler_timeout; leave with _Exit
  fatal,            // the consumer cannot go on; the log says why; leave with _Exit
};

class Worker final : public kafka::Listener {
 public:
  // Makes the handlers and calls their on_start; connects to nobody yet.
  // Throws: std::runtime_error that names the handler whose on_start threw, or for what librdkafka
  // refuses.
  // `settled`: see LaneSetup.
  Worker(const config::Config& config, std::vector<flow::Route> routes, observe::Health& health,
         observe::Metrics& metrics, std::function<void(const Message&)> settled = {});
  ~Worker();

  // Nothing when every topic is there; else the sentence that says which is missing. Waits for
  // them where kafka.wait_for_topics says so, with one line in the log.
  // Blocks: until they are there or `stop`; without waiting at most 10 s.
  std::optional<std::string> await_topics(const StopSignal& stop);

  // Joins the group and works until told to stop.
  // Blocks: until `stop`; then at most worker.shutdown_timeout, or seconds where that is less.
  Ended run(const StopSignal& stop);

 private:
  using Handlers = std::vector<std::unique_ptr<Handler>>;  // one a route

  KeeperSetup keeper_setup() const;
  Handlers make_handlers() const;
  std::vector<Handlers> make_handlers_of_lanes() const;
  void publish_dead_letters();

  void serve(kafka::Event event);
  void receive(std::unique_ptr<kafka::Record> record);
  void serve(const kafka::EndOfPartition& end);
  void serve_posted();
  void serve_notices();
  void serve(const Started& started);
  void serve(const HaltWanted& wanted) { assignment_.halt(wanted); }
  void serve(const HaltEnded& ended) { assignment_.halt_ended(ended); }
  void serve(const Fenced& fenced) { assignment_.fenced(fenced); }
  void serve(const NobodyHas& nobody_has) { membership_.has_no_owner(nobody_has.partition); }
  void serve(const LogDoubted& doubted) { partition_errors_.serve(doubted); }
  void serve(const ClientBroken& broken);
  void report();
  struct Drained {
    std::vector<std::shared_ptr<Partition>> partitions;
    bool idle = false;  // no lane runs a message of theirs any more
  };
  Drained drain(const std::vector<TopicPartition>& ids, std::chrono::milliseconds timeout);
  bool leave();
  void tell_running() const;
  void end_threads();
  bool end_threads_until(Clock::time_point until);

  void on_assigned(const std::vector<TopicPartition>& partitions) override;
  void on_revoked(const std::vector<TopicPartition>& partitions, bool lost) override;
  void on_committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                    const std::string& error) override;
  void on_client_error(const kafka::ClientError& error) override;

  const config::Config& config_;
  const std::string group_;
  const std::vector<flow::Route> routes_;
  observe::Health& health_;
  observe::Metrics& metrics_;
  const std::vector<std::string> topics_;
  PostgresState postgres_;
  Notices notices_;
  Dispatcher dispatcher_;
  LaneSetup lane_setup_;

  std::vector<Handlers> handlers_;  // by lane, until run()
  Handlers replay_handlers_;        // until run()
  kafka::Consumer consumer_;
  KafkaHealth kafka_health_;
  Keeper keeper_;

  Partitions partitions_;
  Caution caution_;
  Fetches fetches_;
  Intake intake_;
  Assignment assignment_;
  PartitionErrors partition_errors_;
  OffsetCommits offset_commits_;
  GroupMembership membership_;
  HandlerWatchdog watchdog_;
  PartitionReports partition_reports_;

  Clock::time_point last_report_{};
  bool handlers_run_ = false;  // when the worker left

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Retention> retention_;
  std::unique_ptr<Replays> replays_;
  std::unique_ptr<DeadLetterPublisher> publisher_;  // none where no route names a topic
};

}  // namespace hapax::worker
