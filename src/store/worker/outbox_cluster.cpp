#include "store/worker/outbox_cluster.hpp"

#include "sql_statements.hpp"

namespace hapax::store {
namespace {

bool has_clusters(Transaction& transaction) {
  return !transaction.run("SELECT to_regclass('hapax.outbox_clusters')")[0][0].is_null();
}

std::string noted(Transaction& transaction, const std::string& group) {
  const Rows rows = transaction.run(sql::kReadOutboxCluster, {group});
  return rows.empty() ? "" : rows[0][0].text();
}

}  // namespace

std::optional<OutboxCluster> read_outbox_cluster(Session& session, const std::string& group) {
  Transaction transaction(session);
  if (!has_clusters(transaction)) return std::nullopt;
  return OutboxCluster{noted(transaction, group)};
}

std::optional<std::string> note_outbox_cluster(Session& session, const OutboxLease& lease,
                                               std::chrono::seconds time,
                                               const std::string& found) {
  Transaction transaction(session);
  if (!fence_outbox(transaction, lease, time)) return std::nullopt;
  transaction.run(sql::kNoteOutboxCluster, {lease.group, found});
  std::string id = noted(transaction, lease.group);
  transaction.commit();
  return id;
}

std::string forget_outbox_cluster(Transaction& transaction, const std::string& group) {
  if (!has_clusters(transaction)) return "";
  const Rows rows = transaction.run(sql::kForgetOutboxCluster, {group});
  return rows.empty() ? "" : rows[0][0].text();
}

}  // namespace hapax::store
