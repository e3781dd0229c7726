#include "inspect/group_state.hpp"

#include <algorithm>

#include "cli/store_access.hpp"
#include "inspect/calls_state.hpp"
#include "inspect/outbox_state.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

Json or_null(const std::optional<std::int64_t>& number) { return number ? Json(*number) : Json(); }

bool stops(const store::Halt& halt, const store::TopicPartition& partition) {
  return halt.topic == partition.first && (halt.whole_route || halt.partition == partition.second);
}

// Whether no member has the partition. If a worker died, it is a member until its session times
// out.
bool nobody_has(const store::TopicPartition& id, const std::optional<kafka::Members>& members) {
  return members && (members->state == "Stable" || members->state == "Empty") &&
         !members->partitions.contains(id);
}

// If a partition has no work, its checkpoint does not move, and that is right.
bool may_have_work(const Json& row, const PartitionInKafka& kafka) {
  return !kafka.end || *kafka.end > row.at("next_offset").get<std::int64_t>();
}

std::string state_of(const Json& row, const PartitionInKafka& kafka, const store::Halt* halt,
                     bool refused, bool nobodys) {
  if (halt != nullptr) return "halted: " + halt->reason;
  if (refused) return "refused";
  if (row.is_null() || row.at("next_offset").is_null()) return "not started";
  if (row.at("owner").is_null()) return "left";
  if (nobodys) return kOwnerIsGone;
  if (row.at("started_runs") >= 2 && may_have_work(row, kafka))
    return "taken " + row.at("started_runs").dump() + " times without progress";
  return "running";
}

// How far the group is behind. It counts from Kafka's committed offset, if there is one, because
// other tools do so.
Json lag_of(const PartitionInKafka& kafka, const Json& next_offset) {
  if (!kafka.end) return nullptr;
  if (kafka.committed) return std::max<std::int64_t>(0, *kafka.end - *kafka.committed);
  if (next_offset.is_null()) return nullptr;
  return std::max<std::int64_t>(0, *kafka.end - next_offset.get<std::int64_t>());
}

Json partition_json(const store::TopicPartition& id, const Json& row, const KafkaSide& side,
                    const std::vector<store::Halt>& halts) {
  const PartitionInKafka& kafka = side.partitions.at(id);
  const auto halt = std::ranges::find_if(halts, [&](const auto& h) { return stops(h, id); });
  const auto column = [&](const char* name) { return row.is_null() ? Json() : row.at(name); };
  return {{"topic", id.first},
          {"partition", id.second},
          {"state", state_of(row, kafka, halt == halts.end() ? nullptr : &*halt,
                             side.refused.contains(id.first), nobody_has(id, side.members))},
          {"owner", column("owner")},
          {"epoch", column("epoch")},
          {"generation", column("generation")},
          {"checkpoint", column("next_offset")},
          {"committed", or_null(kafka.committed)},
          {"end", or_null(kafka.end)},
          {"lag", lag_of(kafka, column("next_offset"))},
          {"open_transaction_at", or_null(kafka.open_since)},
          {"start_as", column("start_as")},
          {"updated_at", column("updated_at")},
          {"age_seconds", column("age_seconds")}};
}

Json halt_json(const store::Halt& halt) {
  return {{"id", halt.id},
          {"topic", halt.topic},
          {"partition", halt.partition},
          {"whole_route", halt.whole_route},
          {"offset", or_null(halt.offset)},
          {"reason", halt.reason},
          {"detail", halt.detail},
          {"since", halt.since},
          {"halted_by", halt.halted_by},
          {"decisions", store::decisions_for(halt.reason, halt.offset.has_value())}};
}

}  // namespace

GroupInStore read_group_in_store(store::Session& session, const std::string& group) {
  GroupInStore known;
  known.halts = store::read_halts(session, group);
  for (const Json& row : store::read_partitions(session, group))
    known.partitions[{row.at("topic"), row.at("partition")}] = row;
  return known;
}

KafkaSide to_ask(const GroupInStore& known) {
  KafkaSide side;
  for (const auto& [id, row] : known.partitions) side.partitions[id];
  for (const store::Halt& halt : known.halts) side.partitions[{halt.topic, halt.partition}];
  return side;
}

Json group_state(const config::Config& config, store::Session& session, GroupInStore known,
                 const KafkaSide& told) {
  const std::string& group = group_of(config);
  KafkaSide side = told;
  side.partitions.merge(to_ask(known).partitions);
  Json status = {{"group", group},
                 {"kafka_error", side.away.empty() ? Json() : Json(side.away)},
                 {"group_state", side.members ? Json(side.members->state) : Json()},
                 {"members", side.members ? Json(side.members->count) : Json()},
                 {"refused_topics", Json::array()},
                 {"partitions", Json::array()},
                 {"halts", Json::array()}};
  for (const auto& [topic, why] : side.refused)
    status["refused_topics"].push_back({{"topic", topic}, {"error", why}});
  for (const auto& [id, kafka] : side.partitions)
    status["partitions"].push_back(partition_json(id, known.partitions[id], side, known.halts));
  for (const store::Halt& halt : known.halts) status["halts"].push_back(halt_json(halt));
  status["waiting"] = store::read_waiting(session, group, kMaxWaiting);
  status["dead_letters"] = store::count_dead_letters(session, group);
  status["outbox"] = outbox_state(session, group);
  status["calls"] = calls_state(config, session);
  return status;
}

}  // namespace hapax::app
