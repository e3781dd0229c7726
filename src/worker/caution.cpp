#include "worker/caution.hpp"

#include <algorithm>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

// Starts of a partition since its checkpoint last moved. If there are more, a message may be
// killing the process.
constexpr int kTrustedRuns = 1;

// Caution lasts for twice as many runs as the lanes make at once, and at most for this many.
constexpr std::size_t kMostCautiousRuns = 1000;

// The messages whose runs were announced and did not come back. Most likely one of them ends the
// process.
void tell_announced(const Partition& partition) {
  for (const auto& [offset, prior] : partition.beginning().known.attempts)
    if (prior.crashes > 0)
      log::warning("ended_with_message",
                   {{"topic", partition.id().first},
                    {"partition", partition.id().second},
                    {"offset", offset},
                    {"times", prior.crashes}},
                   "this message ran alone, and the run did not come back: most likely it ends the "
                   "process. After some such runs it is given up on, as `crashed`");
}

}  // namespace

void Caution::started(const std::shared_ptr<Partition>& partition) {
  // A message that kills is in the log. If the log is empty, caution is not needed.
  const Beginning& beginning = partition->beginning();
  if (beginning.started_runs > kTrustedRuns && beginning.offset < beginning.log_end)
    new_.push_back(partition);
}

// Logs one line for all, because a process that dies leaves many partitions.
void Caution::begin() {
  if (new_.empty()) return;
  const TopicPartition& first = new_.front()->id();
  log::warning("cautious",
               {{"partitions", new_.size()}, {"topic", first.first}, {"partition", first.second}},
               "the last run of these partitions ended, with its process or with PostgreSQL, "
               "before their checkpoints moved. Their messages run alone for a while, so that one "
               "that kills either names itself. This line names the first partition");
  for (const auto& partition : new_) tell_announced(*partition);
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

// When the process died, several handlers of a partition ran, and one of them killed it. So caution
// ends when as many runs have come back as can have run at once, or if no message is left that
// could kill. A moved checkpoint is not enough, because then each slow message before the one that
// kills would cost one more death. Duplicates do not count, because the dead process had settled
// them.
bool Caution::is_needed(const Partition& partition) const {
  const std::size_t at_once = lanes_ * partition.route().batch;
  const std::int64_t passed = partition.checkpointed() - partition.beginning().offset;
  const bool idle = partition.polling.at_end && partition.progress().messages == 0;
  return partition.handler_runs() < std::min(2 * at_once, kMostCautiousRuns) && !partition.over() &&
         passed < static_cast<std::int64_t>(queue_) && !idle;
}

}  // namespace hapax::worker
