#include "store/checkpoints.hpp"

#include <algorithm>

#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

using OptionalText = std::optional<std::string>;
using OptionalOffset = std::optional<std::int64_t>;

// A one-dimensional array literal. Topics hold letters, digits, '.', '_' and '-' only; quoted all
// the same, as one may be called "null".
template <class Values, class Projection>
Parameter array_of(const Values& values, Projection projection) {
  std::string text = "{";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += '"' + *Parameter(projection(value)).text() + '"';
  }
  return text + "}";
}

}  // namespace

StoreIdentity read_store(Session& session) {
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
  const auto stored_system = row["stored_system"].as<OptionalText>();
  const auto system = row["system"].as<OptionalText>();
  identity.copied = row["stored_oid"].text() != row["oid"].text() ||
                    (stored_system && system && *stored_system != *system);
  identity.facts = "made in database oid " + row["stored_oid"].text() + " of system " +
                   stored_system.value_or("unknown") + ", now found in oid " + row["oid"].text() +
                   " of system " + system.value_or("unknown");
  transaction.commit();
  return identity;
}

std::optional<CheckpointRow> read_checkpoint(Session& session, const std::string& group,
                                             const TopicPartition& partition) {
  Transaction transaction(session);
  const Rows rows =
      transaction.run(sql::kReadCheckpoint, {group, partition.first, partition.second});
  if (rows.empty()) return std::nullopt;
  const Row row = rows[0];
  CheckpointRow checkpoint;
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
  return checkpoint;
}

std::optional<Taken> take_partition(Session& session, const Taking& taking) {
  Transaction transaction(session);
  const Rows rows = transaction.run(
      sql::kTakePartition, {taking.group, taking.partition.first, taking.partition.second,
                            taking.owner, taking.key_spec, taking.scope, taking.read_epoch});
  if (rows.empty()) return std::nullopt;
  const Taken taken{rows[0][0].as<std::int64_t>(), rows[0][1].as<int>()};
  transaction.commit();
  return taken;
}

std::optional<std::int64_t> agree_start(Session& session, const Taking& taking,
                                        const AgreedStart& start) {
  Transaction transaction(session);
  const Rows rows = transaction.run(
      sql::kAgreeStart, {taking.group, taking.partition.first, taking.partition.second, start.epoch,
                         start.offset, taking.key_spec, taking.scope, start.cluster_id,
                         start.topic_id.empty() ? Parameter(nullptr) : Parameter(start.topic_id)});
  if (rows.empty()) return std::nullopt;
  const auto highest = rows[0][0].as<std::int64_t>();
  if (start.jump != Jump::none && start.from != start.offset)
    record_position_change(
        transaction, {taking.group, taking.partition, start.generation, start.from, start.offset,
                      start.jump, taking.owner, why_of(start.jump)});
  transaction.commit();
  return highest;
}

std::map<TopicPartition, Held> read_held(Session& session, const std::string& group,
                                         const std::string& owner) {
  Transaction transaction(session);
  std::map<TopicPartition, Held> held;
  for (const Row row : transaction.run(sql::kReadHeld, {group, owner}))
    held[{row["topic"].text(), row["partition"].as<std::int32_t>()}] = {
        row["epoch"].as<std::int64_t>(), row["incarnation"].as<OptionalText>().value_or("")};
  return held;
}

std::set<TopicPartition> write_checkpoints(Session& session, const std::string& group,
                                           std::vector<CheckpointWrite> writes) {
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
  transaction.run(sql::kOpenHalt,
                  {group, halt.topic, halt.partition, halt.whole_route, halt.generation,
                   Parameter(halt.offset), halt.reason, halt.detail, halt.halted_by});
}

std::vector<Halt> read_halts(Session& session, const std::string& group) {
  Transaction transaction(session);
  std::vector<Halt> halts;
  for (const Row row : transaction.run(sql::kReadHalts, {group}))
    halts.push_back({row["id"].as<std::int64_t>(), row["topic"].text(),
                     row["partition"].as<std::int32_t>(), row["whole_route"].as<bool>(),
                     row["generation"].as<std::int32_t>(), row["kafka_offset"].as<OptionalOffset>(),
                     row["reason"].text(), row["detail"].text(), row["since"].text(),
                     row["halted_by"].text()});
  return halts;
}

Ahead read_ahead(Session& session, const std::string& group, const TopicPartition& partition,
                 std::int32_t generation, std::int64_t offset) {
  Transaction transaction(session);
  Ahead ahead;
  for (const Row row : transaction.run(
           sql::kReadAttempts, {group, partition.first, generation, partition.second, offset}))
    ahead.attempts[row["kafka_offset"].as<std::int64_t>()] = {row["count"].as<int>(),
                                                              row["wait_ms"].as<std::int64_t>(),
                                                              row["lasting_ms"].as<std::int64_t>()};
  for (const Row row : transaction.run(
           sql::kReadSkips, {group, partition.first, partition.second, generation, offset})) {
    const auto skipped = row["kafka_offset"].as<std::int64_t>();
    ahead.skips[skipped] = row["ended_by"].text() + ": " + row["why"].text();
    if (row["reason"].text() == "unreadable") ahead.unreadable.insert(skipped);
  }
  return ahead;
}

}  // namespace hapax::store
