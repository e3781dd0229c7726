// Decides what follows from the consumer's events, from notices of other threads, and from the
// time. Worker runs it with Kafka, and the simulation with a consumer in memory.
//
// Owned by the poll thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "flow/route.hpp"
#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "worker/assignment.hpp"
#include "worker/caution.hpp"
#include "worker/fetches.hpp"
#include "worker/group_membership.hpp"
#include "worker/intake.hpp"
#include "worker/kafka_health.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/lane.hpp"
#include "worker/lane_setup.hpp"
#include "worker/offset_commits.hpp"
#include "worker/partition_errors.hpp"
#include "worker/partition_reports.hpp"
#include "worker/partitions.hpp"
#include "worker/record_looks.hpp"

namespace hapax::worker {

// The references outlive the PollThread.
struct PollThreadSetup {
  const config::Worker& settings;
  bool earliest_when_out_of_range;
  const std::vector<flow::Route>& routes;
  LaneSetup& lanes;
  kafka::ConsumerInterface& consumer;
  KeeperInterface& keeper;
  KafkaHealth& kafka_health;
  observe::Health& health;
  std::function<void()> tell_running;  // logs what lanes run
  OrderHash order_hash;
  Now now = &Clock::now;  // for all decisions; only the wait for lanes goes by the real clock
  Intake::Sleep sleep = Intake::sleep_for_real;
};

class PollThread {
 public:
  explicit PollThread(PollThreadSetup setup);

  // The worker has subscribed: the group will assign something.
  void subscribed() { membership_.waits(); }

  // Serves an event of the consumer. Blocks: see Intake::receive().
  void serve(kafka::Event event);

  // Does all that is due beside messages: notices, starts, pauses, offset commits, the end of
  // caution.
  void turn();

  // Tells metrics and readiness how far each partition is.
  void report(const std::vector<std::unique_ptr<Lane>>& lanes);

  // The consumer's callbacks; see kafka::Listener. revoked() blocks the group's rebalance, for
  // about worker.revoke_timeout.
  void assigned(const std::vector<TopicPartition>& ids);
  void revoked(const std::vector<TopicPartition>& ids, bool lost);
  void committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                 const std::string& error);

  struct Drained {
    std::vector<std::shared_ptr<Partition>> partitions;
    bool idle = false;  // no lane runs a message of theirs any more
  };
  // Drops the queued messages of these, waits for running ones, and serves the halts that they
  // asked for.
  // Blocks: at most `timeout`.
  Drained drain(const std::vector<TopicPartition>& ids, std::chrono::milliseconds timeout);
  Drained drain_all(std::chrono::milliseconds timeout);

  // Makes the last commit of these partitions and waits for its answer. Forgets all partitions.
  // Blocks: until `until`.
  void leave(const Drained& drained, Clock::time_point until);

  std::size_t partitions() const { return partitions_.size(); }
  bool any_paused() const { return fetches_.paused() > 0; }

 private:
  void receive(std::unique_ptr<kafka::Record> record);
  void serve(const kafka::EndOfPartition& end);
  void serve(const kafka::PartitionError& error);
  void serve_posted();
  void serve(const Started& started);
  void serve(const LookWanted& wanted) { record_looks_.begin(wanted); }
  void serve(const HaltWanted& wanted) { assignment_.halt(wanted); }
  void serve(const HaltEnded& ended) { assignment_.halt_ended(ended); }
  void serve(const Fenced& fenced) { assignment_.fenced(fenced); }
  void serve(const NobodyHas& nobody_has) { membership_.has_no_owner(nobody_has.partition); }
  void serve(const LogDoubted& doubted) { partition_errors_.serve(doubted); }
  void serve(const ClientBroken& broken);

  const PollThreadSetup setup_;
  Partitions partitions_;
  Caution caution_;
  Fetches fetches_;
  Intake intake_;
  Assignment assignment_;
  PartitionErrors partition_errors_;
  RecordLooks record_looks_;
  OffsetCommits offset_commits_;
  GroupMembership membership_;
  PartitionReports partition_reports_;
};

}  // namespace hapax::worker
