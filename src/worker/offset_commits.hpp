// Commits Kafka's offsets, which follow the checkpoints. One commit is in flight at a time.
// If calls were made and no checkpoint has moved, it commits the offset again once a second. So
// Kafka has the position of PostgreSQL behind these calls, and the next owner compares.
//
// If topics have no ids and a topic is made again, a committed offset would hide that. So a due
// offset waits for a look at the group's offsets that began after the offset became due.
//
// Owned by the poll thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kafka/consumer_interface.hpp"
#include "observe/metrics.hpp"
#include "traces/tracer.hpp"
#include "worker/dispatcher.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

class OffsetCommits {
 public:
  // The references outlive this. `tracer`: null if traces are off.
  OffsetCommits(const Partitions& partitions, kafka::ConsumerInterface& consumer,
                KeeperInterface& keeper, observe::Metrics& metrics, Now now = &Clock::now,
                traces::Tracer* tracer = nullptr);

  // Whether something is due that may be sent. If a topic has no id, it asks the keeper to look at
  // the logs first. A look that finds another log has posted a notice before this returns true.
  bool may_send();

  // Sends what is still due. Precondition: may_send(), and the notices were served since.
  void send();

  // The last commit of partitions that the group takes away. Blocks: for a look at the logs, 2 s at
  // most.
  void send_last(const std::vector<std::shared_ptr<Partition>>& partitions);

  // The same at the worker's end, with its answer. Sends nothing after `until`. Blocks: until then.
  void send_last_and_wait(const std::vector<std::shared_ptr<Partition>>& partitions,
                          Clock::time_point until);

  // The group has taken partitions away, so forgets which offsets are due, and collects them again.
  void forget_due() { due_.clear(); }

  // The consumer's answer to the last commit.
  void answered(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                const std::string& error);

 private:
  // `positions`: also if only PostgreSQL's position has moved.
  std::vector<kafka::Commit> due_of(const std::vector<std::shared_ptr<Partition>>& partitions,
                                    bool positions) const;
  std::vector<kafka::Commit> last_of(std::vector<std::shared_ptr<Partition>> partitions,
                                     std::chrono::milliseconds timeout) const;
  void send(const std::vector<kafka::Commit>& commits);
  void end_span(const std::vector<kafka::Commit>& commits, const char* error);
  const Partition* find(const kafka::Commit& commit) const;

  const Partitions& partitions_;
  kafka::ConsumerInterface& consumer_;
  KeeperInterface& keeper_;
  observe::Metrics& metrics_;
  const Now now_;
  traces::Commits spans_;

  Clock::time_point not_before_{};
  Clock::time_point positions_not_before_{};
  std::vector<kafka::Commit> due_;  // waits for the keeper's look
  Clock::time_point due_since_{};
};

}  // namespace hapax::worker
