#include "store/worker/retention.hpp"

#include <algorithm>

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

bool take_lease(Session& session, const std::string& name, const std::string& holder,
                std::chrono::seconds time) {
  Transaction transaction(session);
  const bool ours = !transaction.run(sql::kTakeLease, {name, holder, time.count()}).empty();
  transaction.commit();
  return ours;
}

ClockReading read_clock(Session& session, std::chrono::system_clock::time_point own,
                        std::chrono::seconds tolerance) {
  const auto since_1970 = std::chrono::duration_cast<std::chrono::seconds>(own.time_since_epoch());
  Transaction transaction(session);
  const Rows rows = transaction.run(sql::kReadClock, {since_1970.count(), tolerance.count()});
  return {.now = rows[0]["now"].text(),
          .ahead = rows[0]["ahead"].as<bool>(),
          .database = rows[0]["database"].text()};
}

std::set<TopicPartition> note_passed(Session& session, const std::string& group,
                                     std::vector<LogEnd> ends) {
  if (ends.empty()) return {};
  std::ranges::sort(ends, {}, &LogEnd::partition);
  Transaction transaction(session);
  const Rows rows = transaction.run(
      sql::kNotePassed, {group, array_of(ends, [](const auto& one) { return one.partition.first; }),
                         array_of(ends, [](const auto& one) { return one.partition.second; }),
                         array_of(ends, [](const auto& one) { return one.epoch; }),
                         array_of(ends, [](const auto& one) { return one.end; }),
                         array_of(ends, [](const auto& one) { return one.at; })});
  std::set<TopicPartition> passed;
  for (const Row row : rows) passed.emplace(row[0].text(), row[1].as<std::int32_t>());
  transaction.commit();
  return passed;
}

std::vector<HeldScope> read_held_scopes(Session& session, const std::string& now) {
  Transaction transaction(session);
  std::vector<HeldScope> scopes;
  for (const Row row : transaction.run(sql::kReadHeldScopes, {now}))
    scopes.push_back({.scope = row["scope"].text(),
                      .until = row["until"].text(),
                      .group = row["group_id"].text(),
                      .partition = {row["topic"].text(), row["partition"].as<std::int32_t>()},
                      .since = std::chrono::seconds(row["seconds"].as<std::int64_t>())});
  return scopes;
}

Removed expire_keys(Session& session, std::size_t limit, const std::string& from,
                    const std::vector<HeldScope>& scopes,
                    const std::optional<std::string>& others) {
  Transaction transaction(session);
  // Else PostgreSQL may read and sort all keys that have expired, if it takes them for few.
  transaction.add("SET LOCAL enable_sort = off");
  const Rows rows = transaction.run(
      sql::kExpireKeys,
      {limit, from, array_of(scopes, [](const auto& one) { return one.scope; }),
       array_of(scopes, [](const auto& one) { return one.until; }), Parameter(others),
       array_of(scopes, [](const auto& one) { return one.removed_until; })});
  const Removed removed{rows[0]["removed"].as<std::size_t>(), rows[0]["looked"].as<std::size_t>(),
                        rows[0]["next"].as<std::optional<std::string>>().value_or(from)};
  transaction.commit();
  return removed;
}

std::string forgotten_until(Transaction& transaction, const std::string& scope) {
  constexpr const char* kNever = "-infinity";
  // Migration 8; a worker of this release also runs on the schema before.
  if (transaction.run("SELECT to_regclass('hapax.forgotten')")[0][0].is_null()) return kNever;
  const Rows rows = transaction.run(sql::kReadForgotten, {scope});
  return rows.empty() ? kNever : rows[0][0].text();
}

}  // namespace hapax::store
