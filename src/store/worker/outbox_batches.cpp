#include "store/worker/outbox_batches.hpp"

#include "sql_statements.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

constexpr const char* kHasBatches = "SELECT to_regclass('hapax.outbox_batches') IS NOT NULL";
constexpr const char* kMayReadBatches =
    "SELECT coalesce(has_table_privilege(to_regclass('hapax.outbox_batches'), 'SELECT'), true)";

}  // namespace

bool may_read_batches(Session& session) {
  Transaction transaction(session);
  return transaction.run(kMayReadBatches)[0][0].as<bool>();
}

std::map<std::string, OpenBatch> read_open_batches(Session& session, const std::string& group) {
  Transaction transaction(session);
  std::map<std::string, OpenBatch> open;
  if (!transaction.run(kHasBatches)[0][0].as<bool>()) return open;
  for (const Row row : transaction.run(sql::kReadOutboxBatches, {group}))
    open[row["topic"].text()] = OpenBatch{.number = row["number"].as<std::int64_t>(),
                                          .token = row["token"].text(),
                                          .follows = row["follows"].text(),
                                          .records = row["records"].as<std::size_t>()};
  return open;
}

std::int64_t open_batch(Transaction& transaction, const std::string& group,
                        const NextBatch& batch) {
  std::string ids = "{";
  for (const std::int64_t id : batch.ids) append_array_element(ids, id);
  return transaction
      .run(sql::kOpenOutboxBatch,
           {group, batch.topic, batch.token, batch.follows, batch.above, ids + "}"})[0][0]
      .as<std::int64_t>();
}

void settle_batch(Transaction& transaction, const std::string& group, const SettledBatch& batch) {
  if (batch.sent) transaction.run(sql::kDeleteOutboxBatch, {group, batch.topic, batch.token});
  transaction.run(sql::kCloseOutboxBatch, {group, batch.topic, batch.token, batch.halted});
}

}  // namespace hapax::store
