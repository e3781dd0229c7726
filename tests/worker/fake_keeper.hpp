// A keeper in memory for the parts of the poll thread: it does what a test tells it, and keeps what
// it was asked.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "worker/keeper_interface.hpp"

namespace hapax::worker {

struct FakeKeeper final : KeeperInterface {
  using Partitions = std::vector<std::shared_ptr<Partition>>;

  bool logs_looked_at(std::chrono::steady_clock::time_point since) override {
    look_wanted_since = since;
    return looked_at && *looked_at > since;
  }
  Partitions with_another_log(const Partitions& partitions,
                              std::chrono::milliseconds /*timeout*/) const override {
    if (kafka_is_away) throw std::runtime_error("Kafka does not answer");
    Partitions found;
    for (const auto& partition : partitions)
      if (std::ranges::find(made_again, partition->id()) != made_again.end())
        found.push_back(partition);
    return found;
  }
  void acquire(const Partitions& partitions, std::chrono::milliseconds after) override {
    for (const auto& partition : partitions) acquired.emplace_back(partition, after);
  }
  void halted(const store::Halt& halt, bool recorded) override {
    halts.emplace_back(halt, recorded);
  }
  void joined() override {}
  bool release(const Partitions& partitions, bool /*idle*/,
               std::chrono::milliseconds /*timeout*/) override {
    released.insert(released.end(), partitions.begin(), partitions.end());
    return true;
  }
  std::string store_id() const override { return "store"; }
  std::string cluster_id() const override { return "cluster"; }

  // What it does.
  std::optional<std::chrono::steady_clock::time_point> looked_at;  // the logs, when a look began
  std::vector<TopicPartition> made_again;                          // their topics
  bool kafka_is_away = false;

  // What it was asked.
  std::optional<std::chrono::steady_clock::time_point> look_wanted_since;
  std::vector<std::pair<std::shared_ptr<Partition>, std::chrono::milliseconds>> acquired;
  std::vector<std::pair<store::Halt, bool>> halts;
  Partitions released;
};

}  // namespace hapax::worker
