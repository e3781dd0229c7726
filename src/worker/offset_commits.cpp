#include "worker/offset_commits.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kafka/consumer.hpp"
#include "kafka/provenance.hpp"
#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kCommitAgain{500};         // after a commit that failed
constexpr milliseconds kBetweenCommits{10};       // between two looks at all partitions
constexpr milliseconds kBetweenPositions{1000};   // likewise, at positions of PostgreSQL
constexpr milliseconds kLastCommitTimeout{2000};  // also for the look before it

bool has_id(const Partition& partition) { return !partition.beginning().topic_id.empty(); }

// error.type of its span.
const char* error_of(kafka::CommitResult result) {
  switch (result) {
    case kafka::CommitResult::done: return "";
    case kafka::CommitResult::dropped: return "dropped";
    case kafka::CommitResult::later: return "deferred";
    case kafka::CommitResult::fatal: break;
  }
  return "fatal";
}

// If not, the partition has started again since, and the commit is of the run before.
bool is_of_this_run(const kafka::Provenance& provenance, const Partition& partition) {
  return partition.polling.started && provenance.epoch == partition.beginning().epoch;
}

std::string position_of(const Partition& partition) {
  const auto seen = partition.seen_wal();
  return seen ? seen->position.text() : "";
}

}  // namespace

OffsetCommits::OffsetCommits(const Partitions& partitions, kafka::ConsumerInterface& consumer,
                             KeeperInterface& keeper, observe::Metrics& metrics, Now now,
                             traces::Tracer* tracer)
    : partitions_(partitions),
      consumer_(consumer),
      keeper_(keeper),
      metrics_(metrics),
      now_(std::move(now)),
      spans_(tracer) {}

const Partition* OffsetCommits::find(const kafka::Commit& commit) const {
  const auto found = partitions_.find(commit.partition);
  if (found == partitions_.end() || !found->second->polling.started) return nullptr;
  return found->second.get();
}

bool OffsetCommits::may_send() {
  const auto now = now_();
  if (now < not_before_) return false;
  not_before_ = now + kBetweenCommits;
  // Until the last commit is answered, it is not known what is due. Otherwise an offset might be
  // committed twice, the second time into a log that was made meanwhile.
  if (consumer_.commits()) return false;
  if (due_.empty()) {
    std::vector<std::shared_ptr<Partition>> all;
    for (const auto& [id, partition] : partitions_) all.push_back(partition);
    const bool positions = now >= positions_not_before_;
    if (positions) positions_not_before_ = now + kBetweenPositions;
    due_ = due_of(all, positions);
    due_since_ = now;
  }
  if (due_.empty()) return false;
  const bool have_ids = std::ranges::all_of(due_, [&](const kafka::Commit& commit) {
    const Partition* const partition = find(commit);
    return partition != nullptr && has_id(*partition);
  });
  return have_ids || keeper_.logs_looked_at(due_since_);
}

// Notices may have stopped a partition, or started it again below the due offset. So each is
// checked.
void OffsetCommits::send() {
  std::erase_if(due_, [&](const kafka::Commit& commit) {
    const Partition* const partition = find(commit);
    return partition == nullptr || partition->checkpointed() < commit.offset;
  });
  send(std::exchange(due_, {}));
}

void OffsetCommits::send(const std::vector<kafka::Commit>& commits) {
  spans_.sent(now_());
  consumer_.commit(commits);
}

void OffsetCommits::end_span(const std::vector<kafka::Commit>& commits, const char* error) {
  std::vector<traces::Commits::Committed> partitions;
  for (const kafka::Commit& commit : commits)
    partitions.push_back({commit.partition.first, commit.partition.second});
  spans_.answered(partitions, error, now_());
}

std::vector<kafka::Commit> OffsetCommits::due_of(
    const std::vector<std::shared_ptr<Partition>>& partitions, bool positions) const {
  std::vector<kafka::Commit> commits;
  for (const auto& partition : partitions) {
    if (!partition->polling.started) continue;
    const std::int64_t offset = partition->checkpointed();
    const bool is_due = offset != partition->committed();
    if (!is_due && !positions) continue;
    kafka::Provenance provenance{keeper_.store_id(), keeper_.cluster_id(),
                                 partition->beginning().epoch};
    provenance.wal = position_of(*partition);
    if (!is_due && provenance.wal == partition->polling.told_wal) continue;
    commits.push_back(
        {partition->id(), offset, partition->polling.leader_epoch, provenance.text()});
  }
  return commits;
}

// Called at the end of partitions, when the keeper's next look would come too late.
std::vector<kafka::Commit> OffsetCommits::last_of(
    std::vector<std::shared_ptr<Partition>> partitions, milliseconds timeout) const {
  std::erase_if(partitions, [](const auto& partition) { return !partition->polling.started; });
  try {
    std::vector<std::shared_ptr<Partition>> to_ask = partitions;
    // If another topic id damages librdkafka, perhaps no halt has been served, so ask about all of
    // them.
    if (!kafka::is_broken_by_another_topic_id())
      std::erase_if(to_ask, [](const auto& partition) { return has_id(*partition); });
    const auto changed = keeper_.with_another_log(to_ask, timeout);
    std::erase_if(partitions, [&](const auto& partition) {
      return std::ranges::find(changed, partition) != changed.end();
    });
    return due_of(partitions, true);
  } catch (const std::exception& error) {
    log::warning("last_commit_left_out", {{"error", error.what()}},
                 "Kafka did not tell whether the topics are still the same; the next owner starts "
                 "at the checkpoint all the same");
    return {};
  }
}

void OffsetCommits::send_last(const std::vector<std::shared_ptr<Partition>>& partitions) {
  send(last_of(partitions, kLastCommitTimeout));
}

void OffsetCommits::send_last_and_wait(const std::vector<std::shared_ptr<Partition>>& partitions,
                                       Clock::time_point until) {
  const auto left = [&] { return std::chrono::duration_cast<milliseconds>(until - now_()); };
  if (left().count() <= 0) return;
  const auto commits = last_of(partitions, std::min(left(), kLastCommitTimeout));
  if (commits.empty() || left().count() <= 0) return;
  spans_.sent(now_());
  try {
    for (const auto& [id, why] :
         consumer_.commit_and_wait(commits, std::min(left(), kLastCommitTimeout)))
      throw std::runtime_error(id.first + "/" + std::to_string(id.second) + ": " + why);
    end_span(commits, "");
  } catch (const std::exception& error) {
    end_span(commits, "failed");
    log::warning("last_commit_failed", {{"error", error.what()}},
                 "the next owner starts at the checkpoint all the same");
  }
}

void OffsetCommits::answered(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                             const std::string& error) {
  using observe::OffsetCommitResult;
  end_span(commits, error_of(result));
  if (result != kafka::CommitResult::done) not_before_ = now_() + kCommitAgain;
  switch (result) {
    case kafka::CommitResult::done:
      metrics_.offset_commit_ended(OffsetCommitResult::committed);
      for (const kafka::Commit& commit : commits) {
        const auto found = partitions_.find(commit.partition);
        const auto provenance = kafka::Provenance::parse(commit.metadata);
        if (found == partitions_.end() || !provenance ||
            !is_of_this_run(*provenance, *found->second))
          continue;
        found->second->committed(commit.offset);
        found->second->polling.told_wal = provenance->wal;
      }
      break;
    case kafka::CommitResult::dropped:
      metrics_.offset_commit_ended(OffsetCommitResult::dropped);
      break;
    case kafka::CommitResult::later:
      metrics_.offset_commit_ended(OffsetCommitResult::deferred);
      log::debug("offset_commit_later", {{"error", error}}, "trying again");
      break;
    case kafka::CommitResult::fatal: metrics_.offset_commit_ended(OffsetCommitResult::fatal); break;
  }
}

}  // namespace hapax::worker
