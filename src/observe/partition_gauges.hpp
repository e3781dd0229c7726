// The gauges of assigned partitions. They appear with the assignment and vanish with it. So after a
// rebalance no two workers report one partition, and a sum over workers is right.
#pragma once

#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "observe/metrics.hpp"
#include "sync/mutex.hpp"

namespace hapax::observe {

class PartitionGauges {
 public:
  PartitionGauges(prometheus::Registry& registry, std::size_t max_partitions);

  void assigned(std::string_view topic, std::int32_t partition);
  void progress(std::string_view topic, std::int32_t partition, const PartitionProgress& progress);
  void state(std::string_view topic, std::int32_t partition, PartitionState state);
  void gone(std::string_view topic, std::int32_t partition);

 private:
  using Family = prometheus::Family<prometheus::Gauge>;
  using Key = std::pair<std::string, std::int32_t>;
  static constexpr std::array kShownStates{"starting", "running", "paused", "halted", "refused"};

  struct Shown {  // null: no such series now
    prometheus::Gauge* watermark = nullptr;
    prometheus::Gauge* checkpoint = nullptr;
    prometheus::Gauge* lag = nullptr;
    prometheus::Gauge* blocked = nullptr;
    prometheus::Gauge* oldest_unsettled = nullptr;
    prometheus::Gauge* checkpoint_age = nullptr;
    std::array<prometheus::Gauge*, kShownStates.size()> states{};
  };

  static void show(Family& family, const Key& key, prometheus::Gauge*& gauge,
                   std::optional<double> value);
  static void show_state(Shown& shown, PartitionState state);

  Family& watermark_;
  Family& checkpoint_;
  Family& lag_;
  Family& blocked_;
  Family& oldest_unsettled_;
  Family& checkpoint_age_;
  Family& state_;
  prometheus::Gauge& not_shown_count_;
  const std::size_t max_partitions_;

  sync::Mutex mutex_;
  std::map<Key, Shown> shown_ HAPAX_GUARDED_BY(mutex_);
  std::set<Key> not_shown_ HAPAX_GUARDED_BY(mutex_);  // assigned beyond max_partitions_
};

}  // namespace hapax::observe
