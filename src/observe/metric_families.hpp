// The series behind Metrics: every name, help text and label in one place. Only metrics.cpp and
// partition_gauges.cpp include this; the rest of hapax never sees prometheus-cpp.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "observe/metrics.hpp"
#include "observe/partition_gauges.hpp"
#include "sync/mutex.hpp"

namespace hapax::observe {

using Counters = prometheus::Family<prometheus::Counter>;
using Gauges = prometheus::Family<prometheus::Gauge>;
using Histograms = prometheus::Family<prometheus::Histogram>;

// A counter with one label of free text: the first kMaxReasons texts by name, then "other".
class ReasonCounters {
 public:
  explicit ReasonCounters(Counters& family) : family_(family) {}
  void increment(std::string_view reason, prometheus::Labels others = {});

 private:
  Counters& family_;
  sync::Mutex mutex_;
  std::set<std::string, std::less<>> seen_ HAPAX_GUARDED_BY(mutex_);
};

struct MetricFamilies {
  explicit MetricFamilies(const Versions& versions, std::size_t max_partitions);

  prometheus::Registry registry;

  Counters& messages;
  Counters& attempts;
  Counters& received_bytes;
  Histograms& handler_seconds;
  Histograms& transaction_seconds;
  ReasonCounters dead_letters;
  ReasonCounters halts;

  prometheus::Gauge& in_flight;
  prometheus::Gauge& queue_messages;
  prometheus::Gauge& queue_bytes;
  prometheus::Gauge& retry_waiting;
  prometheus::Gauge& lanes;
  prometheus::Gauge& lanes_busy;
  Gauges& handlers;
  PartitionGauges partitions;

  std::array<prometheus::Counter*, 3> checkpoints;  // by CheckpointResult
  prometheus::Histogram& checkpoint_seconds;
  std::array<prometheus::Counter*, 4> offset_commits;  // by OffsetCommitResult
  std::array<prometheus::Counter*, 3> rebalances;      // by RebalanceEvent
  prometheus::Gauge& ready;
  prometheus::Gauge& postgres_up;
  prometheus::Counter& postgres_outages;
  Gauges& registry_up;
  prometheus::Gauge& retention_behind;
  prometheus::Counter& serialization_retries;
  prometheus::Gauge& replays_open;
  std::array<prometheus::Counter*, 3> replays;  // by ReplayEnd
  std::array<prometheus::Counter*, 3> spans;    // by SpanEnd
  prometheus::Gauge& dead_letters_unpublished;
  prometheus::Gauge& resident_memory;  // read at each scrape
  prometheus::Gauge& outbox_unsent;
  prometheus::Gauge& outbox_oldest_seconds;
  prometheus::Gauge& outbox_stalled_keys;
  Counters& outbox_sent;
  Counters& calls;
  Histograms& call_seconds;
  Gauges& calls_in_flight;
  Gauges& calls_unknown;
  Counters& gate_requests;
  Histograms& gate_seconds;
  Gauges& gate_connections;
  Gauges& gate_queue;
  Gauges& gate_waiting;
  Gauges& gate_body_bytes;
  Gauges& gate_lost_lanes;
  Counters& gate_handshakes_failed;

  std::atomic<bool> postgres_down{false};  // seen down, and not up since
};

// Seconds, from a fast local commit to a statement that ran into its timeout.
const prometheus::Histogram::BucketBoundaries& second_buckets();

}  // namespace hapax::observe
