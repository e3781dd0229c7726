#include "observe/partition_gauges.hpp"

namespace hapax::observe {
namespace {

prometheus::Family<prometheus::Gauge>& gauges(prometheus::Registry& registry, const char* name,
                                              const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

prometheus::Labels labels(const std::pair<std::string, std::int32_t>& key) {
  return {{"topic", key.first}, {"partition", std::to_string(key.second)}};
}

std::optional<double> seconds(const std::optional<std::chrono::nanoseconds>& time) {
  if (!time) return std::nullopt;
  return std::chrono::duration<double>(*time).count();
}

}  // namespace

PartitionGauges::PartitionGauges(prometheus::Registry& registry, std::size_t max_partitions)
    : watermark_(gauges(registry, "hapax_partition_watermark", "Lowest offset not yet settled.")),
      checkpoint_(
          gauges(registry, "hapax_partition_checkpoint", "The watermark stored in PostgreSQL.")),
      lag_(gauges(registry, "hapax_partition_lag", "Messages from the watermark to the end.")),
      blocked_(gauges(registry, "hapax_partition_blocked_offset",
                      "While paused for a message that waits for a retry: its offset.")),
      oldest_unsettled_(gauges(registry, "hapax_partition_oldest_unsettled_seconds",
                               "Seconds since this worker received its oldest message that is not "
                               "settled; 0 if there is none. The message's own timestamp does not "
                               "count.")),
      checkpoint_age_(gauges(registry, "hapax_partition_checkpoint_age_seconds",
                             "Seconds for which settled messages have been above the checkpoint "
                             "and it has not moved; 0 if there are none.")),
      state_(gauges(registry, "hapax_partition_state", "1 for the state the partition is in.")),
      not_shown_count_(gauges(registry, "hapax_partitions_not_shown",
                              "Partitions assigned beyond the bound on labels.")
                           .Add({})),
      max_partitions_(max_partitions) {}

void PartitionGauges::assigned(std::string_view topic, std::int32_t partition) {
  const Key key(topic, partition);
  const sync::Lock lock(mutex_);
  if (shown_.contains(key)) return;
  if (shown_.size() >= max_partitions_) {
    not_shown_.insert(key);
    not_shown_count_.Set(static_cast<double>(not_shown_.size()));
    return;
  }
  Shown& shown = shown_[key];
  for (std::size_t i = 0; i < kShownStates.size(); ++i) {
    auto with_state = labels(key);
    with_state["state"] = kShownStates[i];
    shown.states[i] = &state_.Add(with_state);
  }
  show_state(shown, PartitionState::starting);
}

void PartitionGauges::progress(std::string_view topic, std::int32_t partition,
                               const PartitionProgress& progress) {
  const Key key(topic, partition);
  const sync::Lock lock(mutex_);
  const auto found = shown_.find(key);
  if (found == shown_.end()) return;
  show(watermark_, key, found->second.watermark, progress.watermark);
  show(checkpoint_, key, found->second.checkpoint, progress.checkpoint);
  show(lag_, key, found->second.lag, progress.lag);
  show(blocked_, key, found->second.blocked, progress.blocked);
  show(oldest_unsettled_, key, found->second.oldest_unsettled, seconds(progress.oldest_unsettled));
  show(checkpoint_age_, key, found->second.checkpoint_age, seconds(progress.checkpoint_age));
}

void PartitionGauges::state(std::string_view topic, std::int32_t partition, PartitionState state) {
  const sync::Lock lock(mutex_);
  const auto found = shown_.find(Key(topic, partition));
  if (found != shown_.end()) show_state(found->second, state);
}

void PartitionGauges::gone(std::string_view topic, std::int32_t partition) {
  const Key key(topic, partition);
  const sync::Lock lock(mutex_);
  if (not_shown_.erase(key) != 0) not_shown_count_.Set(static_cast<double>(not_shown_.size()));
  const auto found = shown_.find(key);
  if (found == shown_.end()) return;
  show(watermark_, key, found->second.watermark, std::nullopt);
  show(checkpoint_, key, found->second.checkpoint, std::nullopt);
  show(lag_, key, found->second.lag, std::nullopt);
  show(blocked_, key, found->second.blocked, std::nullopt);
  show(oldest_unsettled_, key, found->second.oldest_unsettled, std::nullopt);
  show(checkpoint_age_, key, found->second.checkpoint_age, std::nullopt);
  for (prometheus::Gauge* gauge : found->second.states) state_.Remove(gauge);
  shown_.erase(found);
}

void PartitionGauges::show(Family& family, const Key& key, prometheus::Gauge*& gauge,
                           std::optional<double> value) {
  if (value) {
    if (gauge == nullptr) gauge = &family.Add(labels(key));
    gauge->Set(*value);
  } else if (gauge != nullptr) {
    family.Remove(gauge);
    gauge = nullptr;
  }
}

void PartitionGauges::show_state(Shown& shown, PartitionState state) {
  std::size_t now = 1;  // running, and idle: nothing left to run
  if (state == PartitionState::starting) now = 0;
  if (state == PartitionState::paused_full) now = 2;
  if (state == PartitionState::halted) now = 3;
  if (state == PartitionState::refused) now = 4;
  for (std::size_t i = 0; i < shown.states.size(); ++i) shown.states[i]->Set(i == now ? 1 : 0);
}

}  // namespace hapax::observe
