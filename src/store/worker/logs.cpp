#include "store/worker/logs.hpp"

#include <optional>

#include "sql_statements.hpp"
#include "store/array.hpp"

namespace hapax::store {

bool has_logs(Transaction& transaction) {
  return !transaction.run("SELECT to_regclass('hapax.logs')")[0][0].is_null();
}

KnownLogs read_logs(Session& session, const std::string& group,
                    const std::vector<TopicPartition>& partitions) {
  Transaction transaction(session);
  return read_logs(transaction, group, partitions);
}

KnownLogs read_logs(Transaction& transaction, const std::string& group,
                    const std::vector<TopicPartition>& partitions) {
  KnownLogs known;
  if (partitions.empty() || !has_logs(transaction)) return known;
  for (const Row row : transaction.run(
           sql::kReadLogs, {group, array_of(partitions, [](const auto& one) { return one.first; }),
                            array_of(partitions, [](const auto& one) { return one.second; })}))
    known[{row["topic"].text(), row["partition"].as<std::int32_t>()}].push_back(
        {.scope = row["scope"].text(),
         .cluster_id = row["cluster_id"].text(),
         .topic_id = row["topic_id"].text(),
         .generation = row["generation"].as<std::int32_t>(),
         .agreed = row["agreed"].as<bool>(),
         .reached = row["reached"].as<std::int64_t>(),
         .last_record = row["last_record"].as<std::optional<std::string>>().value_or("")});
  return known;
}

}  // namespace hapax::store
