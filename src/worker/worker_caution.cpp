// Caution: a message that kills the process runs alone, so that it names itself.
#include <algorithm>

#include "observe/log.hpp"
#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

// Caution lasts for twice what lanes run at once, and so many runs at most.
constexpr std::size_t kMostCautiousRuns = 1000;

}  // namespace

// Before any of them is fetched. One line for all, because a process that dies leaves many.
void Worker::begin_caution() {
  if (newly_cautious_.empty()) return;
  const TopicPartition& first = newly_cautious_.front()->id();
  log::warning(
      "cautious",
      {{"partitions", newly_cautious_.size()}, {"topic", first.first}, {"partition", first.second}},
      "the last run of these partitions ended, with its process or with PostgreSQL, before "
      "their checkpoints moved. Their messages run alone for a while, so that one that "
      "kills either names itself. This line names the first partition");
  cautious_.insert(cautious_.end(), newly_cautious_.begin(), newly_cautious_.end());
  newly_cautious_.clear();
  dispatcher_.set_cautious(cautious_);
}

// Caution ends when as many of a partition's handlers as can have run beside the one that kills
// have come back, or where there is nothing to be cautious about. A moved checkpoint is not enough:
// each slow message before the one that kills would cost a death. Duplicates are what the dead
// process had settled.
void Worker::end_caution() {
  if (cautious_.empty()) return;
  const auto ended = std::erase_if(cautious_, [&](const std::shared_ptr<Partition>& partition) {
    const std::size_t at_once = config_.worker.lanes * partition->route().batch;
    const std::int64_t passed = partition->checkpointed() - partition->beginning().offset;
    return partition->handler_runs >= std::min(2 * at_once, kMostCautiousRuns) ||
           partition->over() ||
           passed >= static_cast<std::int64_t>(config_.worker.queue.messages) ||
           (partition->polling.at_end && partition->progress().messages == 0);
  });
  if (ended > 0) dispatcher_.set_cautious(cautious_);
}

}  // namespace hapax::worker
