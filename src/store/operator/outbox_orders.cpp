#include "store/operator/outbox_orders.hpp"

#include <algorithm>

#include "sql_statements.hpp"
#include "store/operator/json_rows.hpp"
#include "store/transaction.hpp"
#include "store/worker/outbox_cluster.hpp"

namespace hapax::store {
namespace {

// Precondition: the halts are locked, so that no other operator changes them.
void require_seen(const OutboxOrder& order, const Json& halts) {
  if (!order.seen) return;
  const auto is_seen = [&](const Json& halt) {
    return std::ranges::any_of(*order.seen, [&](const SeenHalt& seen) {
      return halt.at("id") == seen.id && halt.at("reason") == seen.reason;
    });
  };
  if (halts.size() != order.seen->size() || !std::ranges::all_of(halts, is_seen))
    throw Refused("what is halted has changed since it was shown; look again, then decide");
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

struct Skipped {
  std::int64_t id;
  Json records;  // one, or none if only its halt is left
  Json halts;    // its own, which end with it
};

Skipped remove_record(Transaction& transaction, const OutboxOrder& order, std::int64_t id,
                      const Json& open) {
  Skipped skipped{id,
                  json_of_rows<Json>(transaction.run(sql::kReadOutboxRecord, {order.group, id})),
                  Json::array()};
  for (const Json& halt : open)
    if (halt.at("record") == id) skipped.halts.push_back(halt);
  const std::string name = "record " + std::to_string(id);
  if (skipped.records.empty() && skipped.halts.empty())
    throw Refused("group " + order.group + " has no unsent " + name + ": it was sent or skipped");
  for (const Json& record : skipped.records) {
    const auto topic = record.at("topic").get<std::string>();
    if (record.at("held").is_null())
      throw Refused(name + " of " + topic +
                    " is not halted, so the relay may be sending it now; only a halted record can "
                    "be skipped");
    transaction.run(sql::kSkipOutboxRecord, {order.group, topic, id});
  }
  return skipped;
}

}  // namespace

OutboxDecided retry_outbox(Session& session, const OutboxOrder& order, const std::string& which,
                           bool new_cluster) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  OutboxDecided decided;
  decided.halts = json_of_rows<Json>(transaction.run(sql::kLockOutboxHalts, {order.group, which}));
  if (new_cluster) decided.cluster = forget_outbox_cluster(transaction, order.group);
  if (decided.halts.empty() && decided.cluster.empty()) return decided;
  require_seen(order, decided.halts);
  end_halts(transaction, order, decided.halts, "retry");
  log(transaction, order, "retry", which,
      {{"halts", decided.halts}, {"forgotten_cluster", decided.cluster}});
  if (!order.dry_run) transaction.commit();
  return decided;
}

// The halts are locked first. So a second operator who ends one of them waits, and the records stay
// held. They end last, because a record may wait behind the halt of another record in `ids`.
OutboxDecided skip_outbox(Session& session, const OutboxOrder& order,
                          const std::vector<std::int64_t>& ids) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  const Json open =
      json_of_rows<Json>(transaction.run(sql::kLockOutboxHalts, {order.group, nullptr}));
  transaction.run(sql::kNameRemoval, {"skipped"});
  std::vector<Skipped> all;
  for (const std::int64_t id : ids) all.push_back(remove_record(transaction, order, id, open));
  OutboxDecided decided;
  for (const Skipped& skipped : all) {
    end_halts(transaction, order, skipped.halts, "skip");
    std::string target = std::to_string(skipped.id);
    for (const Json& record : skipped.records) {
      target = record.at("topic").get<std::string>() + " " + target;
      decided.records.push_back(record);
    }
    log(transaction, order, "skip", target,
        {{"records", skipped.records}, {"halts", skipped.halts}});
    for (const Json& halt : skipped.halts) decided.halts.push_back(halt);
  }
  require_seen(order, decided.halts);
  if (!order.dry_run) transaction.commit();
  return decided;
}

}  // namespace hapax::store
