#include "store/message/operations.hpp"

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/message/answer.hpp"

namespace hapax::store {
namespace {

Parameter array_of_texts(const std::vector<std::string>& texts) {
  return array_of(texts, [](const std::string& text) { return text; });
}

}  // namespace

std::optional<OperationState> read_operation(Session& session, const OperationsScope& in,
                                             const OperationKey& key) {
  Transaction transaction(session);
  const Rows rows = transaction.run_outside(session.execute(
      sql::kReadOperation, {key.key, in.scope, key.tenant, key.record, array_of_texts(in.paths),
                            array_of_texts(in.scopes), in.retention.count()}));
  if (rows.empty()) return std::nullopt;
  const Row row = rows[0];
  OperationState operation{.waits = row["waits"].as<bool>(),
                           .scope = row["scope"].text(),
                           .status = row["status"].as<std::optional<std::string>>(),
                           .result = row["result"].as<std::optional<std::string>>(),
                           .settled = row["settled"].as<bool>()};
  operation.refused = operation.status == "completed" && row["refused"].as<bool>();
  if (operation.status == "failed" && row["rejected"].as<std::optional<bool>>().value_or(false))
    operation.rejected = row["error"].as<std::optional<std::string>>();
  return operation;
}

std::size_t settle_operations(Session& session, const OperationsScope& in,
                              const std::vector<OperationKey>& keys,
                              const std::vector<std::string>& scopes) {
  Transaction transaction(session);
  commit_synchronously(transaction);
  const Rows rows = transaction.run(sql::kSettleOperations,
                                    {array_of(keys, [](const auto& one) { return one.key; }),
                                     array_of(keys, [](const auto& one) { return one.tenant; }),
                                     array_of(keys, [](const auto& one) { return one.record; }),
                                     array_of_texts(scopes), in.scope, in.retention.count()});
  transaction.commit();
  return rows[0]["settled"].as<std::size_t>();
}

std::vector<WaitingOperation> list_waiting_operations(Session& session, const OperationsScope& in,
                                                      const WaitingOperation& after,
                                                      std::size_t limit) {
  Transaction transaction(session);
  std::vector<WaitingOperation> waiting;
  for (const Row row : transaction.run(
           sql::kListWaitingOperations,
           {in.scope, array_of_texts(in.paths), after.expires_at, after.key, after.tenant, limit}))
    waiting.push_back(
        {row["expires_at"].text(), row["key"].text(), row["tenant"].text(), row["topic"].text()});
  transaction.commit();
  return waiting;
}

}  // namespace hapax::store
