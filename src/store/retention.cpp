#include "store/retention.hpp"

#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

bool take_lease(Session& session, const std::string& name, const std::string& holder,
                std::chrono::seconds time) {
  Transaction transaction(session);
  const bool ours = !transaction.run(sql::kTakeLease, {name, holder, time.count()}).empty();
  transaction.commit();
  return ours;
}

std::size_t expire_keys(Session& session, std::size_t limit) {
  Transaction transaction(session);
  const std::size_t removed = transaction.run(sql::kExpireKeys, {limit}).affected();
  transaction.commit();
  return removed;
}

}  // namespace hapax::store
