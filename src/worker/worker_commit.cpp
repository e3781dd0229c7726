// Kafka's offsets follow the checkpoints.
#include <algorithm>
#include <utility>

#include "observe/log.hpp"
#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

constexpr std::chrono::milliseconds kCommitAgain{500};  // after one that did not get through
constexpr std::chrono::milliseconds kBetweenLooks{10};  // at all partitions, which may be many

bool has_id(const Partition& partition) { return !partition.beginning().topic_id.empty(); }

}  // namespace

// Kafka's offset follows the checkpoint; one commit is in flight at a time.
//
// Where topics have no ids, an offset in a topic that was made again would hide that it was. So
// what is due waits for a look at the group's offsets that began after it was read.
void Worker::commit_offsets() {
  const auto now = Clock::now();
  if (now < commit_not_before_) return;
  commit_not_before_ = now + kBetweenLooks;
  // What is due is not known before the last commit is answered. It might be committed twice, the
  // second time into a log that came meanwhile.
  if (consumer_.commits()) return;
  if (due_.empty()) {
    std::vector<std::shared_ptr<Partition>> all;
    for (const auto& [id, partition] : partitions_) all.push_back(partition);
    due_ = due_commits(all);
    due_since_ = now;
  }
  if (due_.empty()) return;
  const bool has_ids = std::ranges::all_of(due_, [&](const kafka::Commit& commit) {
    const auto found = partitions_.find(commit.partition);
    return found != partitions_.end() && found->second->polling.started && has_id(*found->second);
  });
  if (!has_ids && !keeper_->logs_looked_at(due_since_)) return;
  // A look that finds something has told so by now, and the partition is not there any more.
  for (const Notice& notice : notices_.take())
    std::visit([this](const auto& what) { serve(what); }, notice);
  std::erase_if(due_, [&](const kafka::Commit& commit) {
    const auto found = partitions_.find(commit.partition);
    return found == partitions_.end() || !found->second->polling.started ||
           found->second->checkpointed() < commit.offset;
  });
  consumer_.commit(std::exchange(due_, {}));
}

std::vector<kafka::Commit> Worker::due_commits(
    const std::vector<std::shared_ptr<Partition>>& partitions) const {
  std::vector<kafka::Commit> commits;
  for (const auto& partition : partitions) {
    if (!partition->polling.started) continue;
    const std::int64_t offset = partition->checkpointed();
    if (offset == partition->committed()) continue;
    commits.push_back(
        {partition->id(), offset, partition->polling.leader_epoch,
         kafka::Provenance{keeper_->store_id(), keeper_->cluster_id(), partition->beginning().epoch}
             .text()});
  }
  return commits;
}

// At the end of partitions, when nobody waits for the keeper's next look.
std::vector<kafka::Commit> Worker::last_commits(
    std::vector<std::shared_ptr<Partition>> partitions) const {
  std::erase_if(partitions, [](const auto& partition) { return !partition->polling.started; });
  try {
    std::vector<std::shared_ptr<Partition>> without_id = partitions;
    std::erase_if(without_id, [](const auto& partition) { return has_id(*partition); });
    const auto changed = keeper_->with_another_log(without_id);
    std::erase_if(partitions, [&](const auto& partition) {
      return std::ranges::find(changed, partition) != changed.end();
    });
    return due_commits(partitions);
  } catch (const std::exception& error) {
    log::warning("last_commit_left_out", {{"error", error.what()}},
                 "Kafka did not tell whether the topics are still the same; the next owner starts "
                 "at the checkpoint all the same");
    return {};
  }
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
          found->second->committed(commit.offset);
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
      kafka_health_.failed({true, "commit", error});
      break;
  }
}

}  // namespace hapax::worker
