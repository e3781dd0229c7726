#include "observe/metric_families.hpp"

#include <prometheus/labels.h>

#include <utility>

#include "observe/escape.hpp"

namespace hapax::observe {
namespace {

Counters& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Counter& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return counters(registry, name, help).Add({});
}

prometheus::Gauge& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

Gauges& gauge_family(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Histograms& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// One counter for each value of a label, all there from the start: rates need their zeros.
template <std::size_t Count>
std::array<prometheus::Counter*, Count> counter_each(Counters& family, const char* label,
                                                     const std::array<const char*, Count>& values) {
  std::array<prometheus::Counter*, Count> made{};
  for (std::size_t i = 0; i < Count; ++i) made[i] = &family.Add({{label, values[i]}});
  return made;
}

}  // namespace

const prometheus::Histogram::BucketBoundaries& second_buckets() {
  static const prometheus::Histogram::BucketBoundaries buckets{
      0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
  return buckets;
}

void ReasonCounters::increment(std::string_view reason, prometheus::Labels others) {
  const sync::Lock lock(mutex_);
  std::string label = to_valid_utf8(reason);
  if (!seen_.contains(label)) {
    if (seen_.size() < kMaxReasons)
      seen_.insert(label);
    else
      label = "other";
  }
  others["reason"] = std::move(label);
  family_.Add(others).Increment();
}

MetricFamilies::MetricFamilies(const Versions& versions, std::size_t max_partitions)
    : messages(counters(registry, "hapax_messages_total", "Messages settled, by outcome.")),
      attempts(counters(registry, "hapax_attempts_total", "Runs of a handler that failed.")),
      received_bytes(counters(registry, "hapax_received_bytes_total",
                              "Bytes received from Kafka: keys, headers and payloads.")),
      handler_seconds(histograms(registry, "hapax_handler_seconds",
                                 "Time in the handler, each run that completed.")),
      transaction_seconds(
          histograms(registry, "hapax_transaction_seconds",
                     "Time of a lane with one message or batch, of every outcome.")),
      dead_letters(counters(registry, "hapax_dead_letters_total", "Messages given up on.")),
      halts(counters(registry, "hapax_halts_total", "Partitions or routes stopped on purpose.")),
      in_flight(gauge(registry, "hapax_in_flight", "Messages received and not settled.")),
      queue_messages(gauge(registry, "hapax_queue_messages", "Messages in the lanes' queues.")),
      queue_bytes(gauge(registry, "hapax_queue_bytes", "Bytes in the lanes' queues.")),
      retry_waiting(gauge(registry, "hapax_retry_waiting", "Messages waiting for a retry.")),
      lanes(gauge(registry, "hapax_lanes", "Worker threads with a PostgreSQL connection.")),
      lanes_busy(gauge(registry, "hapax_lanes_busy", "Lanes that process a message now.")),
      handlers(prometheus::BuildGauge()
                   .Name("hapax_handler_info")
                   .Help("Always 1; which version of a handler runs is in its labels.")
                   .Register(registry)),
      partitions(registry, max_partitions),
      checkpoints(counter_each<3>(
          counters(registry, "hapax_checkpoints_total", "Checkpoints sent to PostgreSQL."),
          "result", {"written", "fenced", "failed"})),
      checkpoint_seconds(
          histograms(registry, "hapax_checkpoint_seconds", "Time to write a checkpoint.")
              .Add({}, second_buckets())),
      offset_commits(counter_each<4>(
          counters(registry, "hapax_offset_commits_total", "Offset commits answered by Kafka."),
          "result", {"committed", "dropped", "deferred", "fatal"})),
      rebalances(counter_each<3>(
          counters(registry, "hapax_rebalances_total", "Changes of the assignment."), "event",
          {"assigned", "revoked", "lost"})),
      ready(gauge(registry, "hapax_ready", "1 while /readyz answers 200, else 0.")),
      postgres_up(gauge(registry, "hapax_postgres_up", "1 while PostgreSQL answers, else 0.")),
      postgres_outages(
          counter(registry, "hapax_postgres_outages_total", "Times PostgreSQL went away.")),
      registry_up(gauge_family(registry, "hapax_schema_registry_up",
                               "1 if a route's schema registry answered when asked last, else 0.")),
      retention_behind(gauge(registry, "hapax_retention_behind_seconds",
                             "How long expired keys have stayed, at most.")),
      serialization_retries(
          counter(registry, "hapax_serialization_retries_total",
                  "Transactions run again at once after a serialization failure or deadlock.")),
      replays_open(gauge(registry, "hapax_replays_open",
                         "Replays of the group's dead letters that have not ended.")),
      replays(counter_each<3>(
          counters(registry, "hapax_replays_total", "Replays that ended in this worker."),
          "outcome", {"completed", "refused", "failed"})),
      spans(counter_each<3>(counters(registry, "hapax_spans_total", "Spans of traces that ended."),
                            "outcome", {"sent", "refused", "dropped"})),
      dead_letters_unpublished(gauge(registry, "hapax_dead_letters_unpublished",
                                     "Dead letters that wait for their Kafka topic.")),
      resident_memory(gauge(registry, "process_resident_memory_bytes",
                            "Memory of this process that is in RAM.")),
      outbox_unsent(gauge(registry, "hapax_outbox_unsent",
                          "Published records of the group that Kafka has not acknowledged.")),
      outbox_oldest_seconds(
          gauge(registry, "hapax_outbox_oldest_seconds", "Age of the oldest of them.")),
      outbox_stalled_keys(gauge(registry, "hapax_outbox_stalled_keys",
                                "Keys and topics that wait for an operator's decision.")),
      outbox_sent(counters(registry, "hapax_outbox_sent_total",
                           "Published records that Kafka has acknowledged.")),
      calls(counters(registry, "hapax_calls_total", "Calls to the outside that came back.")),
      call_seconds(histograms(registry, "hapax_call_seconds", "Time of a call to the outside.")),
      calls_in_flight(
          gauge_family(registry, "hapax_calls_in_flight", "Calls to the outside that run now.")),
      calls_unknown(gauge_family(registry, "hapax_calls_unknown",
                                 "Calls whose outcome is unknown, until an operator decides.")),
      gate_requests(counters(registry, "hapax_gate_requests_total",
                             "HTTP requests that the gate answered, by outcome.")),
      gate_seconds(histograms(registry, "hapax_gate_seconds",
                              "Time from a request's header to its answer.")),
      gate_connections(
          gauge_family(registry, "hapax_gate_connections", "Connections of clients to the gate.")),
      gate_queue(gauge_family(registry, "hapax_gate_queue", "Requests that wait for a lane.")),
      gate_waiting(gauge_family(registry, "hapax_gate_waiting",
                                "Requests that wait for another one of the same key.")),
      gate_body_bytes(gauge_family(registry, "hapax_gate_body_bytes",
                                   "Bytes of bodies that are held, or that room is kept for.")),
      gate_lost_lanes(gauge_family(registry, "hapax_gate_lost_lanes",
                                   "Lanes whose handler was given up and has not come back.")),
      gate_handshakes_failed(counters(registry, "hapax_gate_handshakes_failed_total",
                                      "TLS handshakes that did not come to an end.")) {
  prometheus::BuildGauge()
      .Name("hapax_build_info")
      .Help("Always 1; the versions that run are its labels.")
      .Register(registry)
      .Add({{"version", versions.hapax},
            {"librdkafka", versions.librdkafka},
            {"libpqxx", versions.libpqxx},
            {"libpq", versions.libpq}})
      .Set(1);
}

}  // namespace hapax::observe
