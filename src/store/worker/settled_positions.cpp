#include "store/worker/settled_positions.hpp"

#include <algorithm>
#include <iterator>

#include "sql_statements.hpp"
#include "store/array.hpp"

namespace hapax::store {
namespace {

template <class Of>
Parameter topics_of(const std::vector<Of>& all) {
  return array_of(all, [](const auto& one) { return one.partition.first; });
}

template <class Of>
Parameter partitions_of(const std::vector<Of>& all) {
  return array_of(all, [](const auto& one) { return one.partition.second; });
}

}  // namespace

std::vector<TopicPartition> still_settling(Session& session, const std::vector<Taking>& taken) {
  if (taken.empty()) return {};
  Transaction transaction(session);
  std::vector<TopicPartition> open;
  for (const Row row : transaction.run(
           sql::kFindSettling, {taken.front().group, topics_of(taken), partitions_of(taken)}))
    open.emplace_back(row["topic"].text(), row["partition"].as<std::int32_t>());
  return open;
}

void read_positions(Transaction& transaction, const std::string& group,
                    const std::vector<Standing>& standings,
                    std::map<TopicPartition, KnownMessages>& known) {
  std::vector<Standing> asked;
  std::ranges::copy_if(standings, std::back_inserter(asked), &Standing::by_position);
  if (asked.empty()) return;
  const std::vector<Parameter> parameters = {
      group, topics_of(asked), partitions_of(asked),
      array_of(asked, [](const auto& one) { return one.generation; }),
      array_of(asked, [](const auto& one) { return one.offset; })};
  std::vector<Parameter> fenced = parameters;
  fenced.push_back(array_of(asked, [](const auto& one) { return one.epoch; }));
  transaction.run(sql::kDeleteOlderPositions, fenced);
  transaction.run(sql::kDeletePositionsOfOtherLogs, fenced);
  for (const Row row : transaction.run(sql::kReadPositions, parameters))
    known[{row["topic"].text(), row["partition"].as<std::int32_t>()}].settled.insert(
        row["settled"].as<std::int64_t>());
}

void delete_positions(Transaction& transaction, const std::string& group,
                      const std::vector<CheckpointWrite>& written) {
  if (written.empty()) return;
  transaction.run(sql::kDeletePositions,
                  {group, topics_of(written), partitions_of(written),
                   array_of(written, [](const auto& one) { return one.last_written; }),
                   array_of(written, [](const auto& one) { return one.next_offset; })});
}

}  // namespace hapax::store
