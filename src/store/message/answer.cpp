#include "store/message/answer.hpp"

#include "sql_statements.hpp"

namespace hapax::store {

std::optional<StoredAnswer> read_answer(Transaction& transaction, const ClaimRequest& request) {
  const Rows rows = transaction.run(sql::kReadAnswer,
                                    {request.identity.key, request.scope, request.identity.tenant});
  if (rows.empty()) return std::nullopt;
  return StoredAnswer{
      holder_of(rows[0]), rows[0]["result"].as<std::optional<std::string>>(),
      std::chrono::sys_seconds(std::chrono::seconds(rows[0]["expires_at"].as<std::int64_t>()))};
}

void commit_synchronously(Transaction& transaction) {
  transaction.add("SET LOCAL synchronous_commit = on");
}

}  // namespace hapax::store
