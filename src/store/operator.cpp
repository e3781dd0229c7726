#include "store/operator.hpp"

#include "sql_statements.hpp"

namespace hapax::store {
namespace {

using nlohmann::json;

std::string name_of(const TopicPartition& partition) {
  return partition.first + "/" + std::to_string(partition.second);
}

void refuse_wrong_way(const Move& move, std::int64_t from) {
  const bool rewind = move.jump == Jump::rewind;
  if (rewind ? move.to < from : move.to > from) return;
  throw Refused(name_of(move.partition) + " stands at " + std::to_string(from) + ", and " +
                std::to_string(move.to) + " is not " + (rewind ? "before" : "behind") + " it" +
                (move.to == from ? ""
                 : rewind        ? "; use `offsets skip`"
                                 : "; use `offsets rewind`"));
}

// Throws: Refused, before it changes anything.
std::int64_t apply(Transaction& transaction, const Move& move) {
  const auto& [topic, partition] = move.partition;
  const Rows found = transaction.run(sql::kLockCheckpoints, {move.group, topic, partition});
  const json before = found.empty() ? json() : json::parse(found[0][0].text());
  if (before.is_null() || before.at("next_offset").is_null())
    throw Refused("group " + move.group + " has not started on " + name_of(move.partition) +
                  " yet, so there is nothing to move");
  const auto from = before.at("next_offset").get<std::int64_t>();
  refuse_wrong_way(move, from);
  const Rows after = transaction.run(sql::kMoveCheckpoint, {move.group, topic, partition, move.to});
  record_position_change(
      transaction, {move.group, move.partition, before.at("generation").get<std::int32_t>(), from,
                    move.to, move.jump, move.who, move.why});
  log_operation(transaction,
                {move.who, std::string("offsets ") + name_of(move.jump),
                 move.group + " " + name_of(move.partition), move.why,
                 json{{"before", before}, {"after", json::parse(after[0][0].text())}}});
  return from;
}

}  // namespace

void log_operation(Transaction& transaction, const Operation& operation) {
  transaction.run(sql::kInsertOperatorLog, {operation.who, operation.action, operation.target,
                                            operation.why, operation.facts.dump()});
}

std::int64_t move_position(Session& session, const Move& move) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  const std::int64_t from = apply(transaction, move);
  if (!move.dry_run) transaction.commit();
  return from;
}

std::vector<std::string> move_positions(Session& session, const std::vector<Move>& moves) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  std::vector<std::string> refused;
  for (const Move& move : moves) {
    try {
      apply(transaction, move);
    } catch (const Refused& why) {
      refused.emplace_back(why.what());
    }
  }
  transaction.commit();
  return refused;
}

json forget_key(Session& session, const KeyName& key, const json& seen, const std::string& who,
                const std::string& why, bool dry_run) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  const Rows found = transaction.run(sql::kLockKey, {key.key, key.scope, key.tenant});
  if (found.empty()) throw Refused("the key is gone: retention has removed it meanwhile");
  const json before = json::parse(found[0][0].text());
  if (const std::string status = before.at("status"); status == "forgotten" || status == "started")
    throw Refused("the key is `" + status + "`; only completed and failed ones can be forgotten");
  if (before.at("status") != seen.at("status") || before.at("updated_at") != seen.at("updated_at"))
    throw Refused("the key has changed since it was looked at: it is `" +
                  before.at("status").get<std::string>() + "` now; look again");
  transaction.run(sql::kForgetKey, {key.key, key.scope, key.tenant});
  log_operation(transaction, {who, "keys forget", key.scope + " " + key.tenant + " " + key.key, why,
                              json{{"before", before}}});
  if (!dry_run) transaction.commit();
  return before;
}

}  // namespace hapax::store
