#include "store/message/operations.hpp"

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/message/answer.hpp"

namespace hapax::store {
std::optional<Acceptance> read_acceptance(Session& session, const OperationKey& key) {
  Transaction transaction(session);
  const Rows rows = transaction.run_outside(
      session.execute(sql::kReadAcceptance, {key.key, key.scope, key.tenant}));
  if (rows.empty()) return std::nullopt;
  const Row row = rows[0];
  return Acceptance{row["path"].text(), row["fingerprint"].text(), row["waits"].as<bool>()};
}

OperationOutcome read_outcome(Session& session, const OperationKey& key, const OutcomePlace& place,
                              std::chrono::seconds retention) {
  Transaction transaction(session);
  const Rows rows = transaction.run_outside(session.execute(
      sql::kReadOutcome,
      {key.key, key.scope, key.tenant, place.record, place.scope, retention.count()}));
  if (rows.empty()) return {};
  const Row row = rows[0];
  OperationOutcome outcome{.status = row["status"].as<std::optional<std::string>>(),
                           .result = row["result"].as<std::optional<std::string>>(),
                           .settled = row["settled"].as<bool>()};
  outcome.given_up = (outcome.status == "completed" && row["given_up"].as<bool>()) ||
                     (outcome.status == "failed" && row["was_skipped"].as<bool>());
  outcome.refused =
      outcome.status == "completed" && row["has_error"].as<bool>() && !outcome.given_up;
  if (outcome.status == "failed" && row["rejected"].as<std::optional<bool>>().value_or(false))
    outcome.rejected = row["error"].as<std::optional<std::string>>();
  return outcome;
}

void keep_outcome(Transaction& transaction, const OutcomePlace& place,
                  std::chrono::seconds retention) {
  transaction.add_own(transaction.session().execute(
      sql::kKeepOutcome, {place.record, place.scope, retention.count()}));
}

std::size_t settle_operations(Session& session, const std::vector<OperationKey>& keys,
                              const std::vector<OutcomePlace>& places,
                              std::chrono::seconds retention) {
  Transaction transaction(session);
  commit_synchronously(transaction);
  const Rows rows = transaction.run(
      sql::kSettleOperations,
      {array_of(keys, [](const auto& one) { return one.key; }),
       array_of(keys, [](const auto& one) { return one.scope; }),
       array_of(keys, [](const auto& one) { return one.tenant; }),
       array_of(places, [](const auto& one) { return one.record; }),
       array_of(places, [](const auto& one) { return one.scope; }), retention.count()});
  transaction.commit();
  return rows[0]["settled"].as<std::size_t>();
}

std::vector<WaitingOperation> list_waiting_operations(Session& session, const std::string& scope,
                                                      const std::vector<std::string>& paths,
                                                      const WaitingOperation& after,
                                                      std::size_t limit) {
  Transaction transaction(session);
  std::vector<WaitingOperation> waiting;
  for (const Row row :
       transaction.run(sql::kListWaitingOperations,
                       {scope, array_of(paths, [](const std::string& path) { return path; }),
                        after.expires_at, after.key, after.tenant, limit}))
    waiting.push_back({.expires_at = row["expires_at"].text(),
                       .key = row["key"].text(),
                       .tenant = row["tenant"].text(),
                       .path = row["topic"].text(),
                       .fingerprint = row["fingerprint"].text()});
  transaction.commit();
  return waiting;
}

}  // namespace hapax::store
