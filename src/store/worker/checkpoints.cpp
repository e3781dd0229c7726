#include "store/worker/checkpoints.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/quote.hpp"
#include "store/transaction.hpp"
#include "store/worker/doubts.hpp"
#include "store/worker/settled_positions.hpp"

namespace hapax::store {
namespace {

using OptionalText = std::optional<std::string>;
using OptionalOffset = std::optional<std::int64_t>;

TopicPartition id_of(const Row& row) {
  return {row["topic"].text(), row["partition"].as<std::int32_t>()};
}

}  // namespace

StoreIdentity read_store(Session& session, bool with_position) {
  Transaction transaction(session);
  transaction.run(sql::kEnsureIncarnation, {});
  const Rows rows = transaction.run(sql::kReadStore, {});
  if (rows.empty())
    throw DatabaseError(
        {Fault::Kind::sql, "P0002", "hapax.store is empty: run `hapax migrate up`"});
  const Row row = rows[0];
  StoreIdentity identity;
  identity.id = row["id"].text();
  identity.incarnation = row["incarnation"].text();
  identity.unlogged_id = row["unlogged_id"].text();
  const auto stored_system = row["stored_system"].as<OptionalText>();
  const auto system = row["system"].as<OptionalText>();
  identity.copied = row["stored_oid"].text() != row["oid"].text() ||
                    (stored_system && system && *stored_system != *system);
  identity.facts = "made in database oid " + row["stored_oid"].text() + " of system " +
                   stored_system.value_or("unknown") + ", now found in oid " + row["oid"].text() +
                   " of system " + system.value_or("unknown");
  if (with_position) identity.position = read_wal_position(transaction);
  if (identity.position) identity.began = identity.position->at(row["began"].text());
  transaction.commit();
  return identity;
}

std::map<TopicPartition, CheckpointRow> read_checkpoints(
    Session& session, const std::string& group, const std::vector<TopicPartition>& partitions) {
  Transaction transaction(session);
  std::map<TopicPartition, CheckpointRow> rows;
  for (const Row row :
       transaction.run(sql::kReadCheckpoints,
                       {group, array_of(partitions, [](const auto& one) { return one.first; }),
                        array_of(partitions, [](const auto& one) { return one.second; })})) {
    CheckpointRow& checkpoint = rows[id_of(row)];
    checkpoint.epoch = row["epoch"].as<std::int64_t>();
    checkpoint.next_offset = row["next_offset"].as<OptionalOffset>();
    checkpoint.highest = row["highest"].as<OptionalOffset>();
    checkpoint.highest_settled = row["highest_settled"].as<OptionalOffset>();
    checkpoint.generation = row["generation"].as<std::int32_t>();
    checkpoint.owner = row["owner"].as<OptionalText>();
    checkpoint.key_spec = row["key_spec"].text();
    checkpoint.scope = row["scope"].text();
    checkpoint.topic_id = row["topic_id"].as<OptionalText>();
    checkpoint.cluster_id = row["cluster_id"].as<OptionalText>();
    checkpoint.started_runs = row["started_runs"].as<int>();
    checkpoint.start_as = row["start_as"].as<OptionalText>();
    checkpoint.last_record = row["last_record"].as<OptionalText>();
    checkpoint.same_topic = row["same_topic"].as<std::int64_t>();
    checkpoint.is_of_earlier_run = row["is_of_earlier_run"].as<bool>();
  }
  return rows;
}

std::optional<CheckpointRow> read_checkpoint(Session& session, const std::string& group,
                                             const TopicPartition& partition) {
  auto rows = read_checkpoints(session, group, {partition});
  if (rows.empty()) return std::nullopt;
  return std::move(rows.begin()->second);
}

std::map<TopicPartition, Taken> take_partitions(Session& session, std::vector<Taking> takings) {
  if (takings.empty()) return {};
  std::ranges::sort(takings, {}, &Taking::partition);
  Transaction transaction(session);
  const Rows rows =
      transaction.run(sql::kTakePartitions,
                      {takings.front().group, takings.front().owner,
                       array_of(takings, [](const auto& one) { return one.partition.first; }),
                       array_of(takings, [](const auto& one) { return one.partition.second; }),
                       array_of(takings, [](const auto& one) { return one.key_spec; }),
                       array_of(takings, [](const auto& one) { return one.scope; }),
                       array_of(takings, [](const auto& one) { return one.read_epoch; })});
  std::map<TopicPartition, Taken> taken;
  for (const Row row : rows)
    taken[id_of(row)] = {.epoch = row["epoch"].as<std::int64_t>(),
                         .started_runs = row["started_runs"].as<int>(),
                         .generation = row["generation"].as<std::int32_t>(),
                         .next_offset = row["next_offset"].as<OptionalOffset>()};
  transaction.commit();
  std::erase_if(takings, [&](const Taking& taking) {
    return !taking.by_position || !taken.contains(taking.partition);
  });
  for (const TopicPartition& partition : still_settling(session, takings))
    taken[partition].settling = true;
  return taken;
}

std::optional<Taken> take_partition(Session& session, const Taking& taking) {
  const auto taken = take_partitions(session, {taking});
  return taken.empty() ? std::nullopt : std::optional(taken.begin()->second);
}

namespace {

// Two groups that start at once must not give two logs one number, or one log two. So they
// learn it one after the other, and the second decides again on what it reads then.
void learn_logs(Transaction& transaction, std::vector<StartWrite>& starts) {
  std::vector<TopicPartition> ids;
  for (const StartWrite& one : starts)
    if (one.start.learns_log) ids.push_back(one.taking.partition);
  if (ids.empty() || !has_logs(transaction)) return;
  transaction.run("LOCK TABLE hapax.logs IN SHARE ROW EXCLUSIVE MODE");
  const KnownLogs known = read_logs(transaction, starts.front().taking.group, ids);
  std::erase_if(starts, [&](const StartWrite& one) {
    if (!one.start.learns_log) return false;
    const auto found = known.find(one.taking.partition);
    return one.start.known_logs != (found == known.end() ? std::vector<KnownLog>() : found->second);
  });
  for (const auto& [taking, start] : starts)
    if (start.learns_log)
      transaction.add(transaction.session().execute(
          sql::kLearnLog, {taking.scope, taking.partition.first, taking.partition.second,
                           start.cluster_id, start.topic_id, start.generation}));
}

}  // namespace

std::map<TopicPartition, std::int64_t> agree_starts(Session& session,
                                                    std::vector<StartWrite> starts) {
  if (starts.empty()) return {};
  std::ranges::sort(starts, {}, [](const StartWrite& one) { return one.taking.partition; });
  Transaction transaction(session);
  learn_logs(transaction, starts);
  if (starts.empty()) return {};
  // Kafka's offset follows before the first checkpoint, and would tell of a start that a crash took
  // back.
  transaction.add("SET LOCAL synchronous_commit = on");
  const auto& [taking, first] = starts.front();
  const Rows rows = transaction.run(
      sql::kAgreeStarts,
      {taking.group, array_of(starts, [](const auto& one) { return one.taking.partition.first; }),
       array_of(starts, [](const auto& one) { return one.taking.partition.second; }),
       array_of(starts, [](const auto& one) { return one.start.epoch; }),
       array_of(starts, [](const auto& one) { return one.start.offset; }),
       array_of(starts, [](const auto& one) { return one.taking.key_spec; }),
       array_of(starts, [](const auto& one) { return one.taking.scope; }), first.cluster_id,
       array_of(starts, [](const auto& one) { return one.start.topic_id; }),
       array_of(starts, [](const auto& one) { return one.start.generation; }),
       array_of(starts, [](const auto& one) { return one.start.highest_at_least; }),
       // By position, the number also tells a log's first start (delete_positions_of_other_logs).
       array_of(starts, [](const auto& one) {
         return one.start.at_log_end && !one.taking.by_position ? "t" : "f";
       })});
  std::map<TopicPartition, std::int64_t> highest;
  for (const Row row : rows) highest[id_of(row)] = row["highest"].as<std::int64_t>();
  for (const auto& [taken, start] : starts)
    if (highest.contains(taken.partition) && start.jump != Jump::none && start.from != start.offset)
      record_position_change(
          transaction, {taken.group, taken.partition, start.generation, start.from, start.offset,
                        start.jump, taken.owner, why_of(start.jump)});
  std::vector<std::pair<TopicPartition, std::int64_t>> doubts;
  for (const auto& [taken, start] : starts)
    if (highest.contains(taken.partition) && start.doubt_below)
      doubts.emplace_back(taken.partition, *start.doubt_below);
  write_doubts(transaction, taking.group, doubts);
  transaction.commit();
  return highest;
}

std::optional<std::int64_t> agree_start(Session& session, const Taking& taking,
                                        const AgreedStart& start) {
  const auto highest = agree_starts(session, {{taking, start}});
  return highest.empty() ? std::nullopt : std::optional(highest.begin()->second);
}

std::map<TopicPartition, Held> read_held(Session& session, const std::string& group,
                                         const std::string& owner) {
  Transaction transaction(session);
  std::map<TopicPartition, Held> held;
  for (const Row row : transaction.run(sql::kReadHeld, {group, owner}))
    held[{row["topic"].text(), row["partition"].as<std::int32_t>()}] = {
        row["epoch"].as<std::int64_t>(), row["incarnation"].as<OptionalText>().value_or(""),
        row["unlogged_id"].as<OptionalText>().value_or(""),
        row["next_offset"].as<OptionalOffset>().value_or(0)};
  return held;
}

namespace {

void write_last_records(Transaction& transaction, const std::string& group,
                        std::vector<CheckpointWrite> writes) {
  std::erase_if(writes, [](const CheckpointWrite& write) { return write.last_record.empty(); });
  if (writes.empty() || !transaction.run(sql::kHasLastRecord, {})[0][0].as<bool>()) return;
  transaction.run(sql::kWriteLastRecords,
                  {group, array_of(writes, [](const auto& w) { return w.partition.first; }),
                   array_of(writes, [](const auto& w) { return w.partition.second; }),
                   array_of(writes, [](const auto& w) { return w.last_record; })});
}

}  // namespace

std::set<TopicPartition> write_checkpoints(Session& session, const std::string& group,
                                           std::vector<CheckpointWrite> writes,
                                           std::optional<WalPosition>* position) {
  if (writes.empty()) return {};
  std::ranges::sort(writes, {}, &CheckpointWrite::partition);
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  const Rows rows = transaction.run(
      sql::kWriteCheckpoints, {group, array_of(writes, [](const auto& w) { return w.incarnation; }),
                               array_of(writes, [](const auto& w) { return w.partition.first; }),
                               array_of(writes, [](const auto& w) { return w.partition.second; }),
                               array_of(writes, [](const auto& w) { return w.epoch; }),
                               array_of(writes, [](const auto& w) { return w.last_written; }),
                               array_of(writes, [](const auto& w) { return w.next_offset; })});
  std::set<TopicPartition> written;
  for (const Row row : rows) written.emplace(row[0].text(), row[1].as<std::int32_t>());
  std::erase_if(writes, [&](const auto& write) { return !written.contains(write.partition); });
  write_last_records(transaction, group, writes);
  std::erase_if(writes, [](const CheckpointWrite& write) { return !write.by_position; });
  delete_positions(transaction, group, writes);
  // Of the incarnation that the rows were written in, so of no server that came after it.
  if (position != nullptr && !written.empty()) *position = read_wal_position(transaction);
  transaction.commit();
  return written;
}

void leave_partitions(Session& session, const std::string& group, std::vector<Leaving> leaving) {
  if (leaving.empty()) return;
  std::ranges::sort(leaving, {}, &Leaving::partition);
  Transaction transaction(session);
  transaction.run(sql::kLeavePartitions,
                  {group, array_of(leaving, [](const auto& one) { return one.incarnation; }),
                   array_of(leaving, [](const auto& one) { return one.partition.first; }),
                   array_of(leaving, [](const auto& one) { return one.partition.second; }),
                   array_of(leaving, [](const auto& one) { return one.epoch; }),
                   array_of(leaving, [](const auto& one) { return one.highest_settled; })});
  transaction.commit();
}

void open_halt(Session& session, const std::string& group, const Halt& halt) {
  Transaction transaction(session);
  add_halt(transaction, group, halt);
  transaction.commit();
}

void add_halt(Transaction& transaction, const std::string& group, const Halt& halt) {
  transaction.run(sql::kOpenHalt, {group, halt.topic, halt.partition, halt.whole_route,
                                   halt.generation, Parameter(halt.offset), halt.reason,
                                   storable(halt.detail), halt.halted_by, halt.epoch});
}

Halt halt_of(const Row& row) {
  return {.id = row["id"].as<std::int64_t>(),
          .topic = row["topic"].text(),
          .partition = row["partition"].as<std::int32_t>(),
          .whole_route = row["whole_route"].as<bool>(),
          .generation = row["generation"].as<std::int32_t>(),
          .offset = row["kafka_offset"].as<OptionalOffset>(),
          .reason = row["reason"].text(),
          .detail = row["detail"].text(),
          .since = row["since"].text(),
          .halted_by = row["halted_by"].text()};
}

std::vector<Halt> read_halts(Session& session, const std::string& group) {
  Transaction transaction(session);
  std::vector<Halt> halts;
  for (const Row row : transaction.run(sql::kReadHalts, {group})) halts.push_back(halt_of(row));
  return halts;
}

namespace {

std::vector<Parameter> parameters_of(const std::string& group,
                                     const std::vector<Standing>& standings) {
  return {group, array_of(standings, [](const auto& one) { return one.partition.first; }),
          array_of(standings, [](const auto& one) { return one.partition.second; }),
          array_of(standings, [](const auto& one) { return one.generation; }),
          array_of(standings, [](const auto& one) { return one.offset; })};
}

// By position, the decision `run` runs these messages, too (docs/configuration.md).
void read_letters(Transaction& transaction, const std::string& group,
                  const std::vector<Standing>& standings,
                  std::map<TopicPartition, KnownMessages>& known) {
  std::vector<Standing> asked;
  std::ranges::copy_if(standings, std::back_inserter(asked), std::not_fn(&Standing::by_position));
  if (asked.empty()) return;
  for (const Row row : transaction.run(sql::kReadLetters, parameters_of(group, asked)))
    known[id_of(row)].letters.insert(row["kafka_offset"].as<std::int64_t>());
}

}  // namespace

std::map<TopicPartition, KnownMessages> read_known_messages(
    Session& session, const std::string& group, const std::vector<Standing>& standings) {
  if (standings.empty()) return {};
  Transaction transaction(session);
  const std::vector<Parameter> parameters = parameters_of(group, standings);
  std::map<TopicPartition, KnownMessages> known;
  for (const Row row : transaction.run(sql::kReadAttempts, parameters))
    known[id_of(row)].attempts[row["kafka_offset"].as<std::int64_t>()] = {
        row["count"].as<int>(), row["wait_ms"].as<std::int64_t>(),
        row["lasting_ms"].as<std::int64_t>(), row["crashes"].as<int>()};
  for (const Row row : transaction.run(sql::kReadSkips, parameters)) {
    KnownMessages& of_partition = known[id_of(row)];
    const auto skipped = row["kafka_offset"].as<std::int64_t>();
    of_partition.skips[skipped] = row["ended_by"].text() + ": " + row["why"].text();
    if (row["reason"].text() == "unreadable") of_partition.unreadable.insert(skipped);
  }
  read_letters(transaction, group, standings, known);
  read_positions(transaction, group, standings, known);
  transaction.commit();
  return known;
}

}  // namespace hapax::store
