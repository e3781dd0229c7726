#include "store/worker/outbox_lease.hpp"

#include <algorithm>
#include <random>

#include "sql_statements.hpp"

namespace hapax::store {
namespace {

std::string lease_name(const std::string& group) { return "outbox of " + group; }

}  // namespace

// As sql/worker/take_outbox_lease.sql expects it.
std::string outbox_holder(const std::string& relay, std::chrono::seconds time) {
  std::random_device random;
  return relay + " session-" + std::to_string(time.count()) + "s" + std::to_string(random()) +
         std::to_string(random());
}

void show_relay(Session& session, const std::string& holder) {
  Transaction transaction(session);
  transaction.run(sql::kShowRelay, {holder});
  transaction.commit();
}

std::optional<OutboxLease> take_outbox_lease(Session& session, const std::string& group,
                                             const std::string& holder,
                                             const std::string& incarnation,
                                             std::chrono::seconds time) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  // The take locks the row also if another relay has the lease. If this process stands still then,
  // PostgreSQL ends it before the other one's lease is over.
  transaction.add("SET LOCAL idle_in_transaction_session_timeout = '" +
                  std::to_string(std::max<std::int64_t>(1, time.count() / 3)) + "s'");
  const Rows rows =
      transaction.run(sql::kTakeOutboxLease, {lease_name(group), holder, time.count()});
  transaction.commit();
  if (rows.empty()) return std::nullopt;
  return OutboxLease{group, holder, rows[0][0].as<std::int64_t>(), incarnation};
}

// Its COMMIT is synchronous under any setting of the server. A relay that wants the lease waits for
// this transaction's end. So PostgreSQL ends it if this process stands still.
bool fence_outbox(Transaction& transaction, const OutboxLease& lease, std::chrono::seconds time) {
  transaction.add("SET LOCAL synchronous_commit = on");
  transaction.add("SET LOCAL idle_in_transaction_session_timeout = '" +
                  std::to_string(time.count()) + "s'");
  return !transaction
              .run(sql::kFenceOutbox,
                   {lease_name(lease.group), lease.holder, lease.epoch, lease.incarnation})
              .empty();
}

bool renew_outbox_lease(Transaction& transaction, const OutboxLease& lease,
                        std::chrono::seconds time) {
  return !transaction
              .run(sql::kRenewOutboxLease, {lease_name(lease.group), lease.holder, lease.epoch,
                                            lease.incarnation, time.count()})
              .empty();
}

void release_outbox_lease(Session& session, const OutboxLease& lease) {
  Transaction transaction(session);
  transaction.run(sql::kReleaseOutboxLease, {lease_name(lease.group), lease.holder, lease.epoch});
  transaction.commit();
}

}  // namespace hapax::store
