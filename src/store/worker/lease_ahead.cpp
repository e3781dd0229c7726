#include "store/worker/lease_ahead.hpp"

#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

std::optional<LeaseAhead> read_lease_ahead(Session& session, const std::string& group) {
  Transaction transaction(session);
  const Rows rows = transaction.run(sql::kReadLeaseAhead, {group, kLongestLease.count()});
  if (rows.empty()) return std::nullopt;
  return LeaseAhead{.holder = rows[0]["holder"].text(), .until = rows[0]["until"].text()};
}

}  // namespace hapax::store
