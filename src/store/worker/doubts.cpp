#include "store/worker/doubts.hpp"

#include <optional>

#include "sql_statements.hpp"
#include "store/array.hpp"

namespace hapax::store {

std::map<TopicPartition, Doubt> read_doubts(Session& session, const std::string& group,
                                            const std::vector<TopicPartition>& partitions) {
  std::map<TopicPartition, Doubt> doubts;
  if (partitions.empty()) return doubts;
  Transaction transaction(session);
  for (const Row row :
       transaction.run(sql::kReadDoubts,
                       {group, array_of(partitions, [](const auto& one) { return one.first; }),
                        array_of(partitions, [](const auto& one) { return one.second; })}))
    doubts[{row["topic"].text(), row["partition"].as<std::int32_t>()}] = {
        row["below"].as<std::int64_t>(), row["asked"].as<std::optional<std::int64_t>>().value_or(0),
        row["asked_run"].as<std::optional<std::int64_t>>().value_or(0),
        row["decided"].as<std::optional<std::string>>().value_or("")};
  return doubts;
}

void ask_about_doubt(Session& session, const std::string& group, const TopicPartition& partition,
                     std::int64_t below, std::int64_t run) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  transaction.run(sql::kAskAboutDoubt, {group, partition.first, partition.second, below, run});
  transaction.commit();
}

void write_doubts(Transaction& transaction, const std::string& group,
                  const std::vector<std::pair<TopicPartition, std::int64_t>>& below) {
  if (below.empty()) return;
  transaction.run(sql::kWriteDoubts,
                  {group, array_of(below, [](const auto& one) { return one.first.first; }),
                   array_of(below, [](const auto& one) { return one.first.second; }),
                   array_of(below, [](const auto& one) { return one.second; })});
}

}  // namespace hapax::store
