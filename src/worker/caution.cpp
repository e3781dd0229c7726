#include "worker/caution.hpp"

#include <algorithm>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

// Starts of a partition since its checkpoint last moved; more of them, and something kills them.
constexpr int kTrustedRuns = 1;

// Caution lasts for twice what lanes run at once, and so many runs at most.
constexpr std::size_t kMostCautiousRuns = 1000;

}  // namespace

void Caution::started(const std::shared_ptr<Partition>& partition) {
  // A message that kills stands in the log. If the log is empty, caution is not needed.
  const Beginning& beginning = partition->beginning();
  if (beginning.started_runs > kTrustedRuns && beginning.offset < beginning.log_end)
    new_.push_back(partition);
}

// One line for all, because a process that dies leaves many.
void Caution::begin() {
  if (new_.empty()) return;
  const TopicPartition& first = new_.front()->id();
  log::warning("cautious",
               {{"partitions", new_.size()}, {"topic", first.first}, {"partition", first.second}},
               "the last run of these partitions ended, with its process or with PostgreSQL, "
               "before their checkpoints moved. Their messages run alone for a while, so that one "
               "that kills either names itself. This line names the first partition");
  cautious_.insert(cautious_.end(), new_.begin(), new_.end());
  new_.clear();
  dispatcher_.set_cautious(cautious_);
}

void Caution::end() {
  if (cautious_.empty()) return;
  const auto ended =
      std::erase_if(cautious_, [&](const auto& partition) { return !is_needed(*partition); });
  if (ended > 0) dispatcher_.set_cautious(cautious_);
}

// Caution ends when as many of a partition's handlers as can have run beside the one that kills
// have come back, or if there is nothing to be cautious about. A moved checkpoint is not enough:
// each slow message before the one that kills would cost a death. Duplicates are what the dead
// process had settled.
bool Caution::is_needed(const Partition& partition) const {
  const std::size_t at_once = lanes_ * partition.route().batch;
  const std::int64_t passed = partition.checkpointed() - partition.beginning().offset;
  const bool idle = partition.polling.at_end && partition.progress().messages == 0;
  return partition.handler_runs() < std::min(2 * at_once, kMostCautiousRuns) && !partition.over() &&
         passed < static_cast<std::int64_t>(queue_) && !idle;
}

}  // namespace hapax::worker
