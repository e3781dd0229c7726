// Facts for the start table, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "worker/start.hpp"

namespace hapax::worker::start_case {

using store::Jump;

inline constexpr const char* kStore = "store-1";
inline constexpr const char* kCluster = "cluster-1";
inline constexpr const char* kSpec = "spec-1";

inline StartFacts facts() {
  StartFacts facts;
  facts.low = 0;
  facts.high = 100;
  facts.cluster_id = kCluster;
  facts.topic_id = "topic-1";
  facts.store_id = kStore;
  facts.key_spec = kSpec;
  return facts;
}

inline store::CheckpointRow row(std::optional<std::int64_t> next) {
  store::CheckpointRow row;
  row.epoch = 3;
  row.next_offset = next;
  row.highest = next;
  row.key_spec = kSpec;
  row.topic_id = "topic-1";
  row.cluster_id = kCluster;
  return row;
}

inline StartFacts with(std::optional<std::int64_t> committed, bool ours,
                       std::optional<store::CheckpointRow> checkpoint) {
  StartFacts all = facts();
  all.committed = committed;
  if (ours) all.provenance = kafka::Provenance{kStore, kCluster, 3};
  all.row = std::move(checkpoint);
  return all;
}

inline StartAt at(const StartFacts& all) {
  const auto decision = decide_start(all);
  if (const auto* halt = std::get_if<StartHalt>(&decision)) {
    ADD_FAILURE() << "halted: " << halt->reason << ": " << halt->detail;
    return {-1, false, 0};
  }
  return std::get<StartAt>(decision);
}

inline std::string halt(const StartFacts& all) {
  const auto decision = decide_start(all);
  const auto* halt = std::get_if<StartHalt>(&decision);
  return halt != nullptr ? halt->reason : "started";
}

}  // namespace hapax::worker::start_case
