// Kafka's offsets follow the checkpoints.
#include "observe/log.hpp"
#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

constexpr std::chrono::milliseconds kCommitAgain{500};  // after one that did not get through

}  // namespace

// Kafka's offset follows the checkpoint; one commit is in flight at a time.
void Worker::commit_offsets() {
  if (Clock::now() < commit_not_before_) return;
  std::vector<std::shared_ptr<Partition>> all;
  for (const auto& [id, partition] : partitions_) all.push_back(partition);
  consumer_->commit(due_commits(all));
}

std::vector<kafka::Commit> Worker::due_commits(
    const std::vector<std::shared_ptr<Partition>>& partitions) const {
  std::vector<kafka::Commit> commits;
  for (const auto& partition : partitions) {
    if (!partition->polling.started) continue;
    const std::int64_t offset = partition->checkpointed();
    if (offset == partition->polling.committed) continue;
    commits.push_back(
        {partition->id(), offset, partition->polling.leader_epoch,
         kafka::Provenance{keeper_->store_id(), keeper_->cluster_id(), partition->beginning().epoch}
             .text()});
  }
  return commits;
}

void Worker::on_committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                          const std::string& error) {
  using observe::OffsetCommitResult;
  if (result != kafka::CommitResult::done) commit_not_before_ = Clock::now() + kCommitAgain;
  switch (result) {
    case kafka::CommitResult::done:
      metrics_.offset_commit_ended(OffsetCommitResult::committed);
      for (const kafka::Commit& commit : commits)
        if (const auto found = partitions_.find(commit.partition); found != partitions_.end())
          found->second->polling.committed = commit.offset;
      break;
    case kafka::CommitResult::dropped:
      metrics_.offset_commit_ended(OffsetCommitResult::dropped);
      break;
    case kafka::CommitResult::later:
      metrics_.offset_commit_ended(OffsetCommitResult::deferred);
      log::debug("offset_commit_later", {{"error", error}}, "trying again");
      break;
    case kafka::CommitResult::fatal:
      metrics_.offset_commit_ended(OffsetCommitResult::fatal);
      on_client_error({true, "commit", error});
      break;
  }
}

}  // namespace hapax::worker
