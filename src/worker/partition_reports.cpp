#include "worker/partition_reports.hpp"

#include <algorithm>

#include "observe/log.hpp"
#include "payload/reader.hpp"

namespace hapax::worker {
namespace {

using observe::PartitionState;
namespace log = observe::log;

constexpr std::size_t kShownKey = 100;  // bytes of a record key in the log

// For how long a checkpoint has been due.
Clock::duration checkpoint_age(Partition::Polling& polling, std::int64_t checkpoint,
                               std::int64_t watermark) {
  const Clock::time_point now = Clock::now();
  if (watermark <= checkpoint || polling.checkpoint != checkpoint) polling.checkpoint_due = now;
  polling.checkpoint = checkpoint;
  return now - polling.checkpoint_due;
}

}  // namespace

PartitionReports::PartitionReports(const Partitions& partitions, const Assignment& assignment,
                                   const Dispatcher& dispatcher,
                                   const kafka::ConsumerInterface& consumer,
                                   observe::Health& health, observe::Metrics& metrics)
    : partitions_(partitions),
      assignment_(assignment),
      dispatcher_(dispatcher),
      consumer_(consumer),
      health_(health),
      metrics_(metrics) {}

// The offset for which a paused partition waits, if that waits for a retry and not for a lane. Logs
// one line when that begins, and one when the partition goes on.
std::optional<std::int64_t> PartitionReports::blocked_at(Partition& partition,
                                                         std::int64_t watermark) {
  const auto& [topic, number] = partition.id();
  std::optional<std::int64_t>& blocked = partition.polling.blocked;
  const bool paused = partition.polling.paused;
  const auto by = paused ? dispatcher_.blocking(partition, watermark) : std::nullopt;
  if (by && !blocked) {
    const std::string key = by->record_key.value_or("");
    log::warning("partition_paused",
                 {{"topic", topic},
                  {"partition", number},
                  {"offset", watermark},
                  {"attempts", by->attempts},
                  {"record_key", key.size() <= kShownKey ? key : key.substr(0, kShownKey) + "…"}},
                 "a message waits for its next try, and worker.queue lets the partition go no "
                 "further ahead of it; `hapax status` shows the error");
  }
  if (by) blocked = watermark;
  if (blocked && !paused && watermark > *blocked) {
    log::info("partition_goes_on", {{"topic", topic}, {"partition", number}, {"offset", watermark}},
              "the message that it was paused for is settled");
    blocked.reset();
  }
  return blocked && *blocked >= watermark ? blocked : std::nullopt;
}

observe::PartitionReport PartitionReports::report_running(Partition& partition,
                                                          observe::PartitionProgress& shown) {
  observe::PartitionReport report;
  const Partition::Progress progress = partition.progress();
  messages_ += progress.messages;
  bytes_ += progress.bytes;
  report.watermark = shown.watermark = progress.watermark;
  shown.checkpoint = partition.checkpointed();
  shown.checkpoint_age = checkpoint_age(partition.polling, *shown.checkpoint, progress.watermark);
  shown.oldest_unsettled =
      progress.waiting_since ? Clock::now() - *progress.waiting_since : Clock::duration::zero();
  shown.blocked = blocked_at(partition, progress.watermark);
  if (shown.blocked)
    report.reason = "paused: offset " + std::to_string(*shown.blocked) + " waits for a retry";
  if (const std::string why = partition.waits_for(); !why.empty()) report.reason = why;
  report.in_flight = static_cast<std::int64_t>(progress.messages);
  // Messages that run may be of an assignment before.
  report.running = std::min(report.in_flight, running_[partition.id()]);
  if (const auto end = consumer_.known_end(partition.id()))
    report.lag = shown.lag = std::max<std::int64_t>(0, *end - progress.watermark);
  const bool idle = partition.polling.at_end && progress.messages == 0;
  if (idle && report.lag.value_or(0) > 0)
    report.reason =
        "at the end of what Kafka gives out: the rest has just come, or waits for a "
        "transaction to end";
  if (idle) report.lag = 0;  // nothing for a worker to do
  if (!shown.lag) shown.lag = report.lag;
  const std::string& refused = partition.polling.refused;
  if (!refused.empty()) report.reason = refused;
  report.state = !refused.empty()           ? PartitionState::refused
                 : idle                     ? PartitionState::idle
                 : partition.polling.paused ? PartitionState::paused_full
                                            : PartitionState::running;
  return report;
}

void PartitionReports::write(const std::vector<std::unique_ptr<Lane>>& lanes) {
  const Dispatcher::Load load = dispatcher_.load();
  running_.clear();
  for (const auto& lane : lanes)
    if (const auto has = lane->running()) ++running_[{has->source.topic, has->source.partition}];
  messages_ = bytes_ = 0;
  for (const auto& [id, partition] : partitions_) {
    observe::PartitionReport report;
    observe::PartitionProgress shown;
    if (!partition->over() && partition->polling.started)
      report = report_running(*partition, shown);
    else
      report.reason = partition->delayed();
    metrics_.partition_progress(id.first, id.second, shown);
    metrics_.partition_state(id.first, id.second, report.state);
    if (const auto& payload = partition->route().payload)
      if (const auto is_up = payload->registry_is_up()) metrics_.registry(id.first, *is_up);
    health_.partition_report(id.first, id.second, report);
  }
  for (const auto& [id, halt] : assignment_.halted()) {
    metrics_.partition_progress(id.first, id.second, {});  // a halted partition has no progress
    metrics_.partition_state(id.first, id.second, PartitionState::halted);
    health_.partition_report(id.first, id.second, {PartitionState::halted, halt.reason, {}, {}, 0});
  }
  metrics_.in_flight(messages_);
  metrics_.queued(load.queued, bytes_);
  metrics_.waiting_for_retry(load.waiting);
}

}  // namespace hapax::worker
