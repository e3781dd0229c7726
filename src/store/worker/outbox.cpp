#include "store/worker/outbox.hpp"

#include "sql_statements.hpp"
#include "store/quote.hpp"
#include "store/worker/outbox_headers.hpp"

namespace hapax::store {
namespace {

using Text = std::optional<std::string>;
using Marks = std::map<std::string, std::int64_t>;

template <class Value>
std::string outbox_array(const std::vector<Value>& values) {
  std::string array = "{";
  for (const Value& value : values) append_array_element(array, value);
  return array + "}";
}

struct Columns {
  std::vector<std::string> topics;
  std::vector<std::int64_t> ids;
};

template <class Pairs>
Columns columns_of(const Pairs& pairs) {
  Columns columns;
  for (const auto& [topic, id] : pairs) {
    columns.topics.push_back(topic);
    columns.ids.push_back(id);
  }
  return columns;
}

OutboxRow outbox_row_of(const Row& row) {
  OutboxRow read{.id = row["id"].as<std::int64_t>(),
                 .topic = row["topic"].text(),
                 .key = bytes_of_hex(row["record_key"]),
                 .payload = bytes_of_hex(row["payload"]),
                 .headers = {},
                 .idempotency_key = row["idempotency_key"].text(),
                 .source_topic = row["source_topic"].text(),
                 .source_generation = row["source_generation"].text(),
                 .source_partition = row["source_partition"].text(),
                 .source_offset = row["source_offset"].text(),
                 .bytes = row["bytes"].as<std::size_t>()};
  try {
    read.headers = outbox_headers_of(row["headers"].text());
  } catch (const std::exception& error) {
    read.unreadable = std::string("its headers are not [[name, value], …]: ") + error.what();
  }
  return read;
}

// If PostgreSQL made a plan while the outbox was empty, the plan would scan the whole table for
// ever. So scans are off. Without scans, PostgreSQL estimates that small statements are expensive,
// and would compile each for 0.1 s. So jit is off, too.
void begin_reading(Transaction& transaction) {
  transaction.add("SET LOCAL enable_seqscan = off");
  transaction.add("SET LOCAL jit = off");
}

}  // namespace

bool has_outbox(Session& session) {
  Transaction transaction(session);
  return !transaction.run("SELECT to_regclass('hapax.outbox')")[0][0].is_null();
}

bool peek_outbox(Session& session, const std::string& group, const Marks& topics,
                 const std::vector<std::int64_t>& in_hand) {
  const Columns columns = columns_of(topics);
  Transaction transaction(session);
  begin_reading(transaction);
  return !transaction
              .run(sql::kPeekOutbox, {group, outbox_array(columns.topics),
                                      outbox_array(columns.ids), outbox_array(in_hand)})
              .empty();
}

std::set<std::string> find_behind_marks(Session& session, const std::string& group,
                                        const Marks& marks) {
  const Columns columns = columns_of(marks);
  Transaction transaction(session);
  begin_reading(transaction);
  std::set<std::string> found;
  for (const Row row :
       transaction.run(sql::kFindOutboxBehindMarks,
                       {group, outbox_array(columns.topics), outbox_array(columns.ids)}))
    found.insert(row[0].text());
  return found;
}

void fold_outbox_counts(Session& session, const std::string& group) {
  Transaction transaction(session);
  if (transaction.run("SELECT to_regclass('hapax.outbox_counts')")[0][0].is_null()) return;
  transaction.run(sql::kFoldOutboxCounts, {group});
  transaction.commit();
}

std::optional<OutboxRead> step_outbox(Session& session, const OutboxLease& lease,
                                      const OutboxStep& step) {
  Transaction transaction(session);
  begin_reading(transaction);
  if (!fence_outbox(transaction, lease, step.lease)) return std::nullopt;
  std::map<std::string, std::vector<std::int64_t>> sent;
  for (const auto& [topic, id] : step.acknowledged) sent[topic].push_back(id);
  for (const auto& [topic, ids] : sent)
    transaction.add(session.execute(sql::kDeleteOutbox, {lease.group, topic, outbox_array(ids)}));
  for (const SettledBatch& batch : step.settled) settle_batch(transaction, lease.group, batch);
  OutboxRead read;
  for (const NextBatch& batch : step.next)
    read.numbers.push_back(open_batch(transaction, lease.group, batch));
  const Columns wanted = columns_of(step.topics);
  const std::string topics = outbox_array(wanted.topics);
  const std::string marks = outbox_array(wanted.ids);
  for (const Row row : transaction.run(sql::kReadOutboxNewest, {lease.group, topics, marks}))
    read.newest[row["topic"].text()] = row["id"].as<std::int64_t>();
  for (const Row row :
       transaction.run(sql::kReadOutbox, {lease.group, topics, marks, step.most_rows,
                                          step.most_bytes, outbox_array(step.in_hand)}))
    read.rows.push_back(outbox_row_of(row));
  for (const Row row : transaction.run(sql::kReadOutboxWriters, {}))
    read.writers.insert(row[0].text());
  for (const Row row : transaction.run(sql::kReadOpenOutboxHalts, {lease.group}))
    read.halts.insert(row["id"].as<std::int64_t>());
  read.renewed_at = step.renewed_at;
  if (must_be_renewed(step.renewed_at, step.lease)) {
    read.renewed_at = LeaseClock::now();
    if (!renew_outbox_lease(transaction, lease, step.lease)) return std::nullopt;
  }
  transaction.commit();
  return read;
}

std::set<std::string> new_outbox_topics(Session& session, const std::string& group,
                                        const std::set<std::string>& known) {
  Transaction transaction(session);
  begin_reading(transaction);
  std::set<std::string> all = known;
  for (;;) {
    const std::vector<std::string> passed(all.begin(), all.end());
    const Rows rows = transaction.run(sql::kReadOutboxTopics, {group, outbox_array(passed)});
    for (const Row row : rows) all.insert(row[0].text());
    if (rows.empty()) break;
  }
  for (const std::string& topic : known) all.erase(topic);
  return all;
}

bool halt_outbox(Session& session, const OutboxLease& lease, const OutboxHalt& halt,
                 const std::string& relay) {
  constexpr std::chrono::seconds kAsLong{10};
  const std::string detail = storable(halt.detail);
  Transaction transaction(session);
  if (!fence_outbox(transaction, lease, kAsLong)) return false;
  const bool is_told =
      !halt.batch.empty() &&
      !transaction.run(sql::kAmendOutboxHalt, {lease.group, halt.topic, halt.reason, detail, relay})
           .empty();
  if (!is_told)
    transaction.run(sql::kInsertOutboxHalt,
                    {lease.group, halt.topic, halt.row, halt.reason, detail, relay});
  if (!halt.batch.empty())
    settle_batch(transaction, lease.group,
                 {.topic = halt.topic, .token = halt.batch, .halted = true});
  transaction.commit();
  return true;
}

OutboxMeasure measure_outbox(Session& session, const std::string& group, const Marks& topics) {
  const Columns columns = columns_of(topics);
  Transaction transaction(session);
  begin_reading(transaction);
  // a statement of its own: sent in one text with the query, it would not limit the query
  transaction.run("SET LOCAL statement_timeout = '1s'");
  const Rows rows = transaction.run(
      sql::kMeasureOutbox,
      {group, kMostMeasured, outbox_array(columns.topics), outbox_array(columns.ids)});
  return {rows[0]["unsent"].as<std::size_t>(), rows[0]["oldest"].as<double>()};
}

}  // namespace hapax::store
