#include "store/operator/operator.hpp"

#include <map>

#include "sql_statements.hpp"
#include "store/operator/json_rows.hpp"
#include "store/worker/outbox_cluster.hpp"

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
                 : rewind        ? "; what it has not passed comes again if the worker is restarted"
                                 : "; use `offsets rewind`"));
}

using Checkpoints = std::map<std::int32_t, json>;

// The checkpoints of a topic, or of one partition of it. One statement locks them, so that workers
// wait only for what follows.
Checkpoints lock_checkpoints(Transaction& transaction, const Move& move,
                             const Parameter& partition) {
  Checkpoints rows;
  for (const Row row :
       transaction.run(sql::kLockCheckpoints, {move.group, move.partition.first, partition})) {
    auto found = row[0].as<json>();
    const auto partition_of_row = found.at("partition").get<std::int32_t>();
    rows.emplace(partition_of_row, std::move(found));
  }
  return rows;
}

// One round trip; what it adds goes with the next. Throws: Refused, before it changes anything.
Stand apply(Transaction& transaction, const Move& move, const Checkpoints& rows) {
  const auto& [topic, partition] = move.partition;
  const auto found = rows.find(partition);
  // 0 behind the decision `recreated`, which begins again.
  const bool begins = found != rows.end() && found->second.at("start_as") == "initial";
  if (found == rows.end() || (found->second.at("next_offset").is_null() && !begins))
    throw Refused("group " + move.group + " has not started on " + name_of(move.partition) +
                  " yet, so there is nothing to move");
  const json& before = found->second;
  const auto from = begins ? 0 : before.at("next_offset").get<std::int64_t>();
  const Stand stand{from, before.at("generation").get<std::int32_t>()};
  if (move.seen && (stand.generation != move.seen->generation || from < move.seen->offset))
    throw Refused(name_of(move.partition) + " stands at " + std::to_string(from) +
                  " now, and was shown at " + std::to_string(move.seen->offset) +
                  ": another operator has moved it. Look again, then decide");
  refuse_wrong_way(move, from);
  const Rows after = transaction.run(sql::kMoveCheckpoint, {move.group, topic, partition, move.to});
  Session& session = transaction.session();
  transaction.add(session.execute(sql::kInsertPositionChange,
                                  {move.group, topic, partition, stand.generation, from, move.to,
                                   name_of(move.jump), move.who, move.why}));
  transaction.add(
      session.execute(sql::kInsertOperatorLog,
                      {move.who, std::string("offsets ") + name_of(move.jump),
                       move.group + " " + name_of(move.partition), move.why,
                       json{{"before", before}, {"after", after[0][0].as<json>()}}.dump()}));
  return stand;
}

}  // namespace

void log_operation(Transaction& transaction, const Operation& operation) {
  transaction.run(sql::kInsertOperatorLog, {operation.who, operation.action, operation.target,
                                            operation.why, operation.facts.dump()});
}

Stand move_position(Session& session, const Move& move) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  const Stand stand =
      apply(transaction, move, lock_checkpoints(transaction, move, move.partition.second));
  if (!move.dry_run) transaction.commit();
  return stand;
}

std::vector<std::string> move_positions(Session& session, const std::vector<Move>& moves) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  std::vector<std::string> refused;
  const bool one = moves.size() == 1;
  const Checkpoints rows =
      lock_checkpoints(transaction, moves.front(),
                       one ? Parameter(moves.front().partition.second) : Parameter(nullptr));
  for (const Move& move : moves) {
    try {
      apply(transaction, move, rows);
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
  const auto before = found[0][0].as<json>();
  if (const std::string status = before.at("status"); status != "completed" && status != "failed")
    throw Refused("the key is `" + status + "`; only completed and failed ones can be forgotten" +
                  (status == "forgotten" ? "" : ". Its call is open: see `hapax outside list`"));
  if (before.at("status") != seen.at("status") || before.at("updated_at") != seen.at("updated_at"))
    throw Refused("the key has changed since it was looked at: it is `" +
                  before.at("status").get<std::string>() + "` now; look again");
  transaction.run(sql::kForgetKey, {key.key, key.scope, key.tenant});
  log_operation(transaction, {who, "keys forget", key.scope + " " + key.tenant + " " + key.key, why,
                              json{{"before", before}}});
  if (!dry_run) transaction.commit();
  return before;
}

namespace {

std::string name_of(const ForgottenGroup& gone) {
  return gone.group + (gone.topic ? " " + *gone.topic : std::string());
}

json delete_group(Transaction& transaction, const ForgottenGroup& gone) {
  if (!gone.topic) forget_outbox_cluster(transaction, gone.group);
  return json_of_rows<json>(
      transaction.run(sql::kDeleteGroup, {gone.group, Parameter(gone.topic)}));
}

}  // namespace

json read_left_of_group(Session& session, const ForgottenGroup& gone) {
  Transaction transaction(session);
  const Row row = transaction.run(sql::kCountLeftOfGroup, {gone.group, Parameter(gone.topic)})[0];
  json left;
  for (const char* const what : {"unsent", "letters", "calls"})
    left[what] = row[what].as<std::int64_t>();
  return left;
}

json read_group(Session& session, const ForgottenGroup& gone) {
  Transaction transaction(session);  // and rolls back
  json rows = delete_group(transaction, gone);
  if (rows.empty())
    throw Refused("group " + gone.group + " has no checkpoints" +
                  (gone.topic ? " of topic " + *gone.topic : std::string()));
  return rows;
}

void forget_group(Session& session, const ForgottenGroup& gone, const json& seen) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  if (delete_group(transaction, gone) != seen)
    throw Refused("a worker of group " + gone.group + " wrote a checkpoint meanwhile: is it gone?");
  log_operation(transaction, {gone.who, "offsets forget-group", name_of(gone), gone.why,
                              json{{"before", seen}}});
  transaction.commit();
}

}  // namespace hapax::store
