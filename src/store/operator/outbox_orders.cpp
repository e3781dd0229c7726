#include "store/operator/outbox_orders.hpp"

#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

Json rows_of(const Rows& rows) {
  Json list = Json::array();
  for (const Row row : rows) list.push_back(Json::parse(row[0].text()));
  return list;
}

void end_halts(Transaction& transaction, const OutboxOrder& order, const Json& halts,
               const char* decision) {
  for (const Json& halt : halts)
    transaction.run(sql::kEndOutboxHalt,
                    {halt.at("id").get<std::int64_t>(), order.who, order.why, decision});
}

void log(Transaction& transaction, const OutboxOrder& order, const std::string& decision,
         const std::string& target, const nlohmann::json& facts) {
  log_operation(transaction,
                {order.who, "outbox " + decision, order.group + " " + target, order.why, facts});
}

void skip_record(Transaction& transaction, const OutboxOrder& order, std::int64_t id,
                 const Json& open, OutboxDecided& decided) {
  Json own = Json::array();
  for (const Json& halt : open)
    if (halt.at("record") == id) own.push_back(halt);
  const Json found = rows_of(transaction.run(sql::kReadOutboxRecord, {order.group, id}));
  const std::string name = "record " + std::to_string(id);
  if (found.empty() && own.empty())
    throw Refused("group " + order.group + " has no unsent " + name + ": it was sent or skipped");
  std::string target = std::to_string(id);
  for (const Json& record : found) {
    const auto topic = record.at("topic").get<std::string>();
    if (record.at("held").is_null())
      throw Refused(name + " of " + topic +
                    " is not halted, so the relay may be sending it now; only a halted record can "
                    "be skipped");
    transaction.run(sql::kSkipOutboxRecord, {order.group, topic, id});
    target = topic + " " + target;
    decided.records.push_back(record);
  }
  end_halts(transaction, order, own, "skip");
  log(transaction, order, "skip", target, {{"records", found}, {"halts", own}});
  for (const Json& halt : own) decided.halts.push_back(halt);
}

}  // namespace

OutboxDecided retry_outbox(Session& session, const OutboxOrder& order, const std::string& which) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  OutboxDecided decided;
  decided.halts = rows_of(transaction.run(sql::kLockOutboxHalts, {order.group, which}));
  if (decided.halts.empty()) return decided;
  end_halts(transaction, order, decided.halts, "retry");
  log(transaction, order, "retry", which, {{"halts", decided.halts}});
  if (!order.dry_run) transaction.commit();
  return decided;
}

// The halts are locked first: a second operator who ends one waits, and a record stays held.
OutboxDecided skip_outbox(Session& session, const OutboxOrder& order,
                          const std::vector<std::int64_t>& ids) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  const Json open = rows_of(transaction.run(sql::kLockOutboxHalts, {order.group, nullptr}));
  OutboxDecided decided;
  for (const std::int64_t id : ids) skip_record(transaction, order, id, open, decided);
  if (!order.dry_run) transaction.commit();
  return decided;
}

}  // namespace hapax::store
