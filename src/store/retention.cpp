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

Removed expire_keys(Session& session, std::size_t limit, const std::string& from) {
  Transaction transaction(session);
  const Rows rows = transaction.run(sql::kExpireKeys, {limit, from});
  const Removed removed{rows[0]["count"].as<std::size_t>(),
                        rows[0]["until"].as<std::optional<std::string>>().value_or(from)};
  transaction.commit();
  return removed;
}

}  // namespace hapax::store
