// Judges from plain facts whether the worker is alive, and whether it is ready.
//
// Pure: no clock, no lock, no thread. It fails closed: a fact that is not known counts against
// readiness.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/partition_state.hpp"

namespace hapax::observe {

using TimePoint = std::chrono::steady_clock::time_point;

// The answer to a probe. `reasons` names each problem; it is empty if ok.
struct Verdict {
  bool ok = false;
  std::vector<std::string> reasons;
  nlohmann::ordered_json detail;
};

// How long a part may make no progress before it counts as stuck.
struct HealthBounds {
  std::chrono::nanoseconds poll_loop = std::chrono::seconds(30);
  std::chrono::nanoseconds stall = std::chrono::seconds(60);
};

// What the worker knows of one assigned partition.
struct PartitionReport {
  PartitionState state = PartitionState::starting;
  std::string reason;                     // of halted, refused, starting; paused for a retry
  std::optional<std::int64_t> watermark;  // lowest offset not settled; nothing: not started yet
  std::optional<std::int64_t> lag;        // messages to the partition's end; nothing: not known
  std::int64_t in_flight = 0;             // received, not settled; waiting for a retry too
  std::int64_t running = 0;               // of these, those that a lane has now
};

struct PartitionFacts {
  PartitionReport report;
  TimePoint last_advance;  // when the watermark last moved, nothing was to do, or it was assigned
};

struct PostgresFacts {
  bool up = false;
  bool writable = false;
  std::string error_class;  // what went wrong, while not up and writable
  TimePoint since;
};

// Everything the verdicts look at.
struct HealthBoard {
  using Key = std::pair<std::string, std::int32_t>;  // topic, partition

  TimePoint poll_turned;                  // the poll loop's last turn
  std::optional<std::string> fatal;       // why the worker can't go on
  bool started = false;                   // start-up went through
  bool draining = false;                  // told to stop
  bool consumes = true;                   // a relay does not, so it joins no group
  bool joined = false;                    // a join of the consumer group has completed
  std::string group_error;                // why there is none; "": not known
  std::optional<bool> kafka_reachable;    // nothing: not known
  std::string kafka_error;                // why it is not reachable; "": not known
  std::optional<PostgresFacts> postgres;  // nothing: not known
  std::map<Key, PartitionFacts> partitions;
};

// Live: the poll loop turned within its bound, and nothing fatal happened. Nothing else counts,
// because a restart of the worker fixes neither an outage of PostgreSQL nor a halted partition.
Verdict judge_live(const HealthBoard& board, TimePoint now, const HealthBounds& bounds);

// Ready: live, started and not draining. Kafka is reachable, and PostgreSQL is reachable and
// writable. A worker has joined its group, perhaps without a partition. (A relay joins none.) Each
// partition advances, or is idle at its end. If a partition has work (in flight, or lag) and its
// watermark did not move for `stall`, the worker is not ready.
Verdict judge_ready(const HealthBoard& board, TimePoint now, const HealthBounds& bounds);

}  // namespace hapax::observe
