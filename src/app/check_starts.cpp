// `hapax check`: whether a worker's partitions would start. Decides as a worker does, so what would
// halt the first `hapax run` fails here.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/findings.hpp"
#include "app/publishing.hpp"
#include "cli/kafka_reader.hpp"
#include "cli/store_access.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/migrate.hpp"
#include "store/worker/checkpoints.hpp"
#include "worker/start.hpp"

namespace hapax::app {
namespace {

using Partitions = std::vector<store::TopicPartition>;

// A session on a database that can be compared with Kafka. Nothing if there is none, which the
// checks of PostgreSQL report.
std::optional<store::Session> usable_store(const config::Config& config) {
  try {
    store::Session session = connect(config);
    if (store::schema_problem(session, oldest_schema(config)) || store::read_store(session).copied)
      return std::nullopt;
    return session;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// The topic's partitions that are not halted. `hapax resume` decides about the others.
Partitions partitions_of(const config::Route& route, const KafkaReader& reader,
                         const std::vector<store::Halt>& halts) {
  Partitions partitions;
  const int count = reader.consumer().partition_count(route.topic, kKafkaTimeout);
  for (int number = 0; number < count; ++number) {
    const store::TopicPartition id{route.topic, number};
    if (std::ranges::none_of(halts, [&](const auto& halt) { return halt.stops(id); }))
      partitions.push_back(id);
  }
  return partitions;
}

std::string ways_out(const std::string& reason) {
  const std::string resume = "start a worker, which halts, and `hapax resume` with one of: " +
                             store::decisions_for(reason, false);
  if (reason == "checkpoint_missing" || reason == "other_store")
    return "if postgres.url names the wrong database, correct it. If all shall start over in this "
           "one, give kafka.group.id a new name. Otherwise " +
           resume;
  return resume;
}

struct WouldHalt {
  std::string partitions;  // their numbers
  std::string detail;      // of the first
};

// Asks Kafka for its offsets before PostgreSQL for the checkpoints, and for the logs' ends last.
// Then a group that works meanwhile contradicts nothing.
std::map<std::string, WouldHalt> halting_starts(const config::Config& config,
                                                const config::Route& route, const Partitions& asked,
                                                const KafkaReader& reader, store::Session& session,
                                                const std::string& cluster_id) {
  const auto committed = reader.consumer().committed(asked, kKafkaTimeout);
  const auto rows = store::read_checkpoints(session, group_of(config), asked);
  const auto ranges = reader.consumer().ranges(asked, kKafkaTimeout);
  worker::StartFacts facts;
  facts.cluster_id = cluster_id;
  facts.topic_id = reader.consumer().topic_id(route.topic, kKafkaTimeout);
  facts.store_id = store::read_store(session).id;
  facts.earliest_when_out_of_range = config.kafka.out_of_range == config::OutOfRange::earliest;
  std::map<std::string, WouldHalt> halting;  // by the reason
  for (const auto& [id, offset] : committed) {
    const auto row = rows.find(id);
    const auto range = ranges.find(id);
    if (range == ranges.end()) continue;
    facts.committed = offset.offset;
    facts.provenance = offset.offset ? kafka::Provenance::parse(offset.metadata) : std::nullopt;
    facts.low = range->second.low;
    facts.high = range->second.high;
    facts.row = row == rows.end() ? std::nullopt : std::optional(row->second);
    // A group that works under the old keys would look as if it had not finished.
    facts.key_spec = facts.row ? facts.row->key_spec : "";
    const auto start = worker::decide_start(facts);
    const auto* const halt = std::get_if<worker::StartHalt>(&start);
    if (halt == nullptr) continue;
    WouldHalt& found = halting[halt->reason];
    if (found.partitions.empty()) found.detail = halt->detail;
    found.partitions += (found.partitions.empty() ? "" : ", ") + std::to_string(id.second);
  }
  return halting;
}

}  // namespace

void check_starts(const config::Config& config, const KafkaReader& reader,
                  const std::string& cluster_id, Findings& findings) {
  auto session = usable_store(config);
  if (!session) return;
  for (const config::Route& route : config.routes) {
    const std::string what = "start of topic " + route.topic;
    findings.attempt(what, "may the user of kafka.* read the offsets of this group?", [&] {
      const auto halts = store::read_halts(*session, group_of(config));
      const Partitions asked = partitions_of(route, reader, halts);
      if (asked.empty()) return;
      const auto halting = halting_starts(config, route, asked, reader, *session, cluster_id);
      for (const auto& [reason, found] : halting)
        findings.fail(
            what, "partitions " + found.partitions + " would halt, " + reason + ": " + found.detail,
            ways_out(reason));
      if (halting.empty()) findings.ok(what, "no partition would halt");
    });
  }
}

}  // namespace hapax::app
