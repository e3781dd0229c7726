// The worker's numbers for Prometheus. Each method names an event; metrics.cpp names the series.
//
// Numbers only count. No code decides by them, and if they are lost, no message is.
//
// Labels are bounded, so that many partitions or many reasons cannot flood the monitoring.
// `max_partitions` bounds partitions; hapax_partitions_not_shown counts those left out. kMaxReasons
// bounds reasons; further ones count as "other".
//
// Hides prometheus-cpp. Thread safety: all of it may be called from any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "observe/partition_state.hpp"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace hapax::observe {

struct MetricFamilies;

inline constexpr std::size_t kMaxReasons = 64;  // distinct labels for each kind of reason

enum class SettledAs : std::uint8_t { completed, duplicate, failed, skipped };
enum class CheckpointResult : std::uint8_t { written, fenced, failed };
enum class OffsetCommitResult : std::uint8_t { committed, dropped, deferred, fatal };
enum class ReplayEnd : std::uint8_t { completed, refused, failed };
// What became of spans: the collector took them, refused them, or was away or slow, so they were
// left out.
enum class SpanEnd : std::uint8_t { sent, refused, dropped };
enum class RebalanceEvent : std::uint8_t { assigned, revoked, lost };

// One route's counters, looked up once. Its methods take no lock but the histograms' short one.
// Cheap to copy. Lifetime: the Metrics that made it must outlive it.
class RouteMetrics {
 public:
  void settled(SettledAs outcome);
  void attempted();                                       // an attempt: a run that failed
  void dead_lettered(std::string_view reason);            // takes a lock: rare
  void received(std::size_t bytes);                       // key, headers and payload
  void handler_ran(std::chrono::nanoseconds took);        // of a run that completed
  void transaction_ended(std::chrono::nanoseconds took);  // BEGIN to COMMIT's answer

 private:
  friend class Metrics;
  RouteMetrics() = default;

  MetricFamilies* families_ = nullptr;
  std::string topic_;
  std::array<prometheus::Counter*, 4> settled_{};  // by SettledAs
  prometheus::Counter* attempts_ = nullptr;
  prometheus::Counter* received_bytes_ = nullptr;
  prometheus::Histogram* handler_seconds_ = nullptr;
  prometheus::Histogram* transaction_seconds_ = nullptr;
};

enum class CallEnded { answered, refused, not_called, failed, unknown };

// Of a route that calls to the outside.
class CallMetrics {
 public:
  void began();
  void ended(CallEnded how, std::chrono::nanoseconds took);
  void unknown(std::size_t count);  // calls whose outcome is not known

 private:
  friend class Metrics;
  CallMetrics() = default;

  std::array<prometheus::Counter*, 5> ended_{};  // by CallEnded
  prometheus::Histogram* seconds_ = nullptr;
  prometheus::Gauge* in_flight_ = nullptr;
  prometheus::Gauge* unknown_ = nullptr;
};

// What became of an HTTP request at the gate.
enum class Answered : std::uint8_t {
  executed,     // its handler ran and committed
  replayed,     // the stored answer
  rejected,     // its handler refused it, for good
  drifted,      // its key is another request's
  in_flight,    // its key is being executed
  refused,      // malformed, too large, not authenticated, not there
  failed,       // its handler failed
  unavailable,  // PostgreSQL is away, or there is no room
  unguarded,    // a safe method
};
inline constexpr std::size_t kAnsweredCount = 9;
const char* name_of(Answered how);

// Of the gate. As RouteMetrics.
class GateMetrics {
 public:
  void answered(Answered how, std::chrono::nanoseconds took);

 private:
  friend class Metrics;
  GateMetrics() = default;

  std::array<prometheus::Counter*, kAnsweredCount> answered_{};  // by Answered
  prometheus::Histogram* seconds_ = nullptr;
};

// What hapax_build_info shows.
struct Versions {
  std::string hapax;
  std::string librdkafka;
  std::string libpqxx;
  std::string libpq;
};

// The progress of one partition. A number that is not known, or no longer, has no series.
struct PartitionProgress {
  std::optional<std::int64_t> watermark;
  std::optional<std::int64_t> checkpoint;
  std::optional<std::int64_t> lag;                     // messages
  std::optional<std::int64_t> blocked = std::nullopt;  // paused until this offset's retry works
  std::optional<std::chrono::nanoseconds> oldest_unsettled = std::nullopt;  // 0: all is settled
  std::optional<std::chrono::nanoseconds> checkpoint_age = std::nullopt;    // 0: none is due
};

class Metrics {
 public:
  explicit Metrics(const Versions& versions, std::size_t max_partitions = 1000);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The counters of a route, at 0 from now on. The same arguments give the same counters.
  CallMetrics calls(std::string_view topic);
  RouteMetrics route(std::string_view topic, std::string_view handler);

  // Of a route of the gate, by its path; "" for requests that no route takes.
  GateMetrics gate(std::string_view route);
  void gate_has(std::size_t connections, std::size_t queued, std::size_t waiting,
                std::size_t body_bytes);
  void gate_lost(std::size_t lanes);
  void gate_handshake_failed();

  // Which version of a handler runs: hapax_handler_info.
  void handler(std::string_view topic, std::string_view name, std::string_view version);

  void in_flight(std::size_t messages);  // received, not settled
  void queued(std::size_t messages, std::size_t bytes);
  void waiting_for_retry(std::size_t messages);
  void lanes(std::size_t count);
  void lane_became_busy();
  void lane_became_free();

  // Partition numbers exist from partition_assigned to partition_gone. Between the two, progress
  // and state are shown. Outside they are ignored, so a late call cannot bring a lost partition
  // back.
  void partition_assigned(std::string_view topic, std::int32_t partition);
  void partition_progress(std::string_view topic, std::int32_t partition,
                          const PartitionProgress& progress);
  void partition_state(std::string_view topic, std::int32_t partition, PartitionState state);
  void partition_gone(std::string_view topic, std::int32_t partition);

  void checkpoint_ended(CheckpointResult result, std::chrono::nanoseconds took);
  void offset_commit_ended(OffsetCommitResult result);
  void rebalanced(RebalanceEvent event);
  void postgres_came_up();
  void postgres_went_down();  // counts an outage, if it was not down already
  void registry(std::string_view topic, bool is_up);  // of the schemas of a route
  // How long expired keys have stayed; 0 if another worker removes them.
  void retention_behind(std::chrono::seconds time);
  void serialization_retried();  // 40001 or 40P01: run again at once, no attempt
  void halted(std::string_view reason);
  void replays_open(std::size_t count);  // of the whole group
  void replay_ended(ReplayEnd how);
  // Of the group's outbox, reported by the relay that sends. `halts`: keys and topics that are
  // stopped.
  void outbox_measured(std::size_t unsent, double oldest_seconds, std::size_t halts);
  void outbox_sent(std::string_view topic, std::size_t count);
  void spans(SpanEnd how, std::size_t count);
  void dead_letters_unpublished(std::size_t count);  // of this worker's routes

  // All series in Prometheus' text format 0.0.4. Blocks: only for the time of printing.
  std::string text() const;
  std::string text(bool ready) const;  // with whether /readyz answers 200

 private:
  std::unique_ptr<MetricFamilies> families_;
};

}  // namespace hapax::observe
