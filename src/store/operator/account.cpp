#include "store/operator/account.hpp"

#include "sql_statements.hpp"
#include "store/operator/json_rows.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

using OptionalText = std::optional<std::string>;

std::vector<Parameter> parameters_of(const Stretch& stretch) {
  return {stretch.group,      stretch.partition.first,
          stretch.generation, stretch.partition.second,
          stretch.from,       stretch.to};
}

std::string text(const Row& row, std::string_view column) {
  return row[column].as<OptionalText>().value_or("");
}

}  // namespace

std::vector<std::optional<KeyRow>> read_key_rows(
    Session& session, const std::string& scope,
    const std::vector<const key::Identity*>& identities) {
  std::vector<std::optional<KeyRow>> found(identities.size());
  if (identities.empty()) return found;
  std::string keys = "{";
  std::string tenants = "{";
  for (const key::Identity* const identity : identities) {
    append_array_element(keys, identity->key);
    append_array_element(tenants, identity->tenant);
  }
  Transaction transaction(session);
  for (const Row row : transaction.run(sql::kReadKeyRows, {keys + "}", scope, tenants + "}"}))
    found[row["n"].as<std::size_t>() - 1] = {holder_of(row), row["retaken"].as<bool>(),
                                             text(row, "updated_at"), text(row, "expires_at"),
                                             row["refused"].as<bool>()};
  return found;
}

std::map<std::int64_t, DeadRow> read_dead_rows(Session& session, const Stretch& stretch) {
  Transaction transaction(session);
  std::map<std::int64_t, DeadRow> found;
  for (const Row row : transaction.run(sql::kReadDeadRows, parameters_of(stretch)))
    found[row["kafka_offset"].as<std::int64_t>()] = {row["id"].as<std::int64_t>(),
                                                     text(row, "reason"),
                                                     text(row, "error"),
                                                     text(row, "created_at"),
                                                     row["ended_at"].as<OptionalText>(),
                                                     row["ended_as"].as<OptionalText>(),
                                                     row["ended_by"].as<OptionalText>(),
                                                     row["ended_why"].as<OptionalText>()};
  return found;
}

std::map<std::int64_t, AttemptRow> read_attempt_rows(Session& session, const Stretch& stretch) {
  Transaction transaction(session);
  std::map<std::int64_t, AttemptRow> found;
  for (const Row row : transaction.run(sql::kReadAttemptRows, parameters_of(stretch)))
    found[row["kafka_offset"].as<std::int64_t>()] = {
        row["count"].as<int>(), row["crashes"].as<int>(), text(row, "last_error"),
        text(row, "last_at"), text(row, "next_try")};
  return found;
}

std::set<std::int64_t> read_settled(Session& session, const Stretch& stretch) {
  Transaction transaction(session);
  std::set<std::int64_t> found;
  for (const Row row : transaction.run(sql::kReadSettled, parameters_of(stretch)))
    found.insert(row["settled"].as<std::int64_t>());
  return found;
}

std::vector<JumpRow> read_jumps(Session& session, const std::string& group,
                                const TopicPartition& partition, std::int32_t generation) {
  Transaction transaction(session);
  std::vector<JumpRow> found;
  for (const Row row :
       transaction.run(sql::kReadJumps, {group, partition.first, partition.second, generation}))
    found.push_back({row["from_offset"].as<std::optional<std::int64_t>>(),
                     row["to_offset"].as<std::int64_t>(), text(row, "cause"), text(row, "who"),
                     text(row, "why"), text(row, "at"), row["at_ms"].as<std::int64_t>()});
  return found;
}

std::optional<Decided> read_same_topic(Session& session, const std::string& group,
                                       const TopicPartition& partition, std::int32_t generation) {
  Transaction transaction(session);
  const Rows rows =
      transaction.run(sql::kReadSameTopic, {group, partition.first, partition.second, generation});
  if (rows.empty()) return std::nullopt;
  return Decided{text(rows[0], "who"), text(rows[0], "why"), text(rows[0], "at")};
}

nlohmann::ordered_json read_replays_of(Session& session, std::int64_t dead_letter) {
  Transaction transaction(session);
  return json_of_rows<nlohmann::ordered_json>(transaction.run(sql::kReadReplaysOf, {dead_letter}));
}

}  // namespace hapax::store
