#include "observe/metrics.hpp"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <fstream>

#include "observe/escape.hpp"
#include "observe/metric_families.hpp"

namespace hapax::observe {
namespace {

constexpr std::array kSettledAs{"completed", "duplicate", "failed", "skipped"};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

template <typename Array, typename Enum>
prometheus::Counter& pick(const Array& counters, Enum which) {
  return *counters.at(static_cast<std::size_t>(which));
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;  // in pages
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void RouteMetrics::settled(SettledAs outcome) { pick(settled_, outcome).Increment(); }
void RouteMetrics::attempted() { attempts_->Increment(); }
void RouteMetrics::dead_lettered(std::string_view reason) {
  families_->dead_letters.increment(reason, {{"topic", topic_}});
}
void RouteMetrics::received(std::size_t bytes) {
  received_bytes_->Increment(static_cast<double>(bytes));
}
void RouteMetrics::handler_ran(std::chrono::nanoseconds took) {
  handler_seconds_->Observe(seconds(took));
}
void RouteMetrics::transaction_ended(std::chrono::nanoseconds took) {
  transaction_seconds_->Observe(seconds(took));
}

void CallMetrics::began() { in_flight_->Increment(); }
void CallMetrics::ended(CallEnded how, std::chrono::nanoseconds took) {
  in_flight_->Decrement();
  pick(ended_, how).Increment();
  seconds_->Observe(seconds(took));
}
void CallMetrics::unknown(std::size_t count) { unknown_->Set(static_cast<double>(count)); }

const char* name_of(Answered how) {
  static constexpr std::array<const char*, kAnsweredCount> kNames{
      "executed", "replayed", "rejected",    "drifted",  "in_flight",
      "refused",  "failed",   "unavailable", "unguarded"};
  return kNames[static_cast<std::size_t>(how)];
}

void GateMetrics::answered(Answered how, std::chrono::nanoseconds took) {
  pick(answered_, how).Increment();
  seconds_->Observe(seconds(took));
}

Metrics::Metrics(const Versions& versions, std::size_t max_partitions)
    : families_(std::make_unique<MetricFamilies>(versions, max_partitions)) {}

Metrics::~Metrics() = default;

void Metrics::handler(std::string_view topic, std::string_view name, std::string_view version) {
  families_->handlers
      .Add({{"topic", to_valid_utf8(topic)},
            {"handler", to_valid_utf8(name)},
            {"version", to_valid_utf8(version)}})
      .Set(1);
}

RouteMetrics Metrics::route(std::string_view topic, std::string_view handler) {
  RouteMetrics route;
  route.families_ = families_.get();
  route.topic_ = to_valid_utf8(topic);
  const prometheus::Labels by_topic{{"topic", route.topic_}};
  prometheus::Labels by_handler = by_topic;
  by_handler["handler"] = to_valid_utf8(handler);
  for (std::size_t i = 0; i < kSettledAs.size(); ++i) {
    prometheus::Labels by_outcome = by_handler;
    by_outcome["outcome"] = kSettledAs[i];
    route.settled_[i] = &families_->messages.Add(by_outcome);
  }
  route.attempts_ = &families_->attempts.Add(by_handler);
  route.received_bytes_ = &families_->received_bytes.Add(by_topic);
  route.handler_seconds_ = &families_->handler_seconds.Add(by_topic, second_buckets());
  route.transaction_seconds_ = &families_->transaction_seconds.Add(by_topic, second_buckets());
  return route;
}

CallMetrics Metrics::calls(std::string_view topic) {
  static constexpr const char* kEnds[] = {"answered", "refused", "not_called", "failed", "unknown"};
  const prometheus::Labels by_topic{{"topic", to_valid_utf8(topic)}};
  CallMetrics calls;
  for (std::size_t i = 0; i < std::size(kEnds); ++i) {
    prometheus::Labels by_outcome = by_topic;
    by_outcome["outcome"] = kEnds[i];
    calls.ended_[i] = &families_->calls.Add(by_outcome);
  }
  calls.seconds_ = &families_->call_seconds.Add(by_topic, second_buckets());
  calls.in_flight_ = &families_->calls_in_flight.Add(by_topic);
  calls.unknown_ = &families_->calls_unknown.Add(by_topic);
  return calls;
}

GateMetrics Metrics::gate(std::string_view route) {
  const prometheus::Labels by_route{{"route", to_valid_utf8(route)}};
  GateMetrics gate;
  for (std::size_t i = 0; i < kAnsweredCount; ++i) {
    prometheus::Labels by_outcome = by_route;
    by_outcome["outcome"] = name_of(static_cast<Answered>(i));
    gate.answered_[i] = &families_->gate_requests.Add(by_outcome);
  }
  gate.seconds_ = &families_->gate_seconds.Add(by_route, second_buckets());
  return gate;
}
void Metrics::gate_has(std::size_t connections, std::size_t queued, std::size_t waiting,
                       std::size_t body_bytes) {
  const auto set = [](Gauges& family, std::size_t value) {
    family.Add({}).Set(static_cast<double>(value));
  };
  set(families_->gate_connections, connections);
  set(families_->gate_queue, queued);
  set(families_->gate_waiting, waiting);
  set(families_->gate_body_bytes, body_bytes);
}

void Metrics::gate_handshake_failed() { families_->gate_handshakes_failed.Add({}).Increment(); }
void Metrics::gate_lost(std::size_t lanes) {
  families_->gate_lost_lanes.Add({}).Set(static_cast<double>(lanes));
}

void Metrics::in_flight(std::size_t messages) {
  families_->in_flight.Set(static_cast<double>(messages));
}
void Metrics::queued(std::size_t messages, std::size_t bytes) {
  families_->queue_messages.Set(static_cast<double>(messages));
  families_->queue_bytes.Set(static_cast<double>(bytes));
}
void Metrics::waiting_for_retry(std::size_t messages) {
  families_->retry_waiting.Set(static_cast<double>(messages));
}
void Metrics::lanes(std::size_t count) { families_->lanes.Set(static_cast<double>(count)); }
void Metrics::lane_became_busy() { families_->lanes_busy.Increment(); }
void Metrics::lane_became_free() { families_->lanes_busy.Decrement(); }

void Metrics::partition_assigned(std::string_view topic, std::int32_t partition) {
  families_->partitions.assigned(topic, partition);
}
void Metrics::partition_progress(std::string_view topic, std::int32_t partition,
                                 const PartitionProgress& progress) {
  families_->partitions.progress(topic, partition, progress);
}
void Metrics::partition_state(std::string_view topic, std::int32_t partition,
                              PartitionState state) {
  families_->partitions.state(topic, partition, state);
}
void Metrics::partition_gone(std::string_view topic, std::int32_t partition) {
  families_->partitions.gone(topic, partition);
}

void Metrics::checkpoint_ended(CheckpointResult result, std::chrono::nanoseconds took) {
  pick(families_->checkpoints, result).Increment();
  families_->checkpoint_seconds.Observe(seconds(took));
}
void Metrics::offset_commit_ended(OffsetCommitResult result) {
  pick(families_->offset_commits, result).Increment();
}
void Metrics::rebalanced(RebalanceEvent event) { pick(families_->rebalances, event).Increment(); }

std::string Metrics::text(bool ready) const {
  families_->ready.Set(ready ? 1 : 0);
  return text();
}
void Metrics::postgres_came_up() {
  families_->postgres_down = false;
  families_->postgres_up.Set(1);
}
void Metrics::postgres_went_down() {
  families_->postgres_up.Set(0);
  if (!families_->postgres_down.exchange(true)) families_->postgres_outages.Increment();
}
void Metrics::registry(std::string_view topic, bool is_up) {
  families_->registry_up.Add({{"topic", to_valid_utf8(topic)}}).Set(is_up ? 1 : 0);
}
void Metrics::retention_behind(std::chrono::seconds time) {
  families_->retention_behind.Set(static_cast<double>(time.count()));
}
void Metrics::serialization_retried() { families_->serialization_retries.Increment(); }
void Metrics::replays_open(std::size_t count) {
  families_->replays_open.Set(static_cast<double>(count));
}
void Metrics::replay_ended(ReplayEnd how) { pick(families_->replays, how).Increment(); }
void Metrics::spans(SpanEnd how, std::size_t count) {
  pick(families_->spans, how).Increment(static_cast<double>(count));
}
void Metrics::dead_letters_unpublished(std::size_t count) {
  families_->dead_letters_unpublished.Set(static_cast<double>(count));
}
void Metrics::outbox_measured(std::size_t unsent, double oldest_seconds, std::size_t halts) {
  families_->outbox_unsent.Set(static_cast<double>(unsent));
  families_->outbox_oldest_seconds.Set(oldest_seconds);
  families_->outbox_stalled_keys.Set(static_cast<double>(halts));
}
void Metrics::outbox_sent(std::string_view topic, std::size_t count) {
  families_->outbox_sent.Add({{"topic", to_valid_utf8(topic)}})
      .Increment(static_cast<double>(count));
}
void Metrics::halted(std::string_view reason) { families_->halts.increment(reason); }

std::string Metrics::text() const {
  families_->resident_memory.Set(resident_bytes());
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace hapax::observe
