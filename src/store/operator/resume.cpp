#include "store/operator/resume.hpp"

#include <algorithm>

#include "sql_statements.hpp"
#include "store/operator/decisions.hpp"
#include "store/transaction.hpp"
#include "store/worker/logs.hpp"

namespace hapax::store {
namespace {

using nlohmann::json;

std::string name_of(const Halt& halt) {
  return halt.topic + (halt.whole_route ? " (whole route)" : "/" + std::to_string(halt.partition));
}

void add_rows(json& list, const Rows& rows) {
  for (const Row row : rows) list.push_back(row[0].as<json>());
}

void refuse_unfit(const Decision& decision, const Halt& halt) {
  if (!decision.fits(halt.reason))
    throw Refused(
        name_of(halt) + " is halted for " + halt.reason + ", which `" + std::string(decision.name) +
        "` does not end; what does: " + decisions_for(halt.reason, halt.offset.has_value()));
  if (needs_message(decision) && !halt.offset)
    throw Refused(name_of(halt) + ": the halt names no message, so there is none to " +
                  std::string(decision.name));
}

// An operator cannot decide on a message that he was not shown.
void refuse_unseen(const Resumption& wanted, const Halt& halt) {
  if (wanted.offset && halt.offset != wanted.offset)
    throw Refused(name_of(halt) + " is halted " +
                  (halt.offset ? "at offset " + std::to_string(*halt.offset)
                               : std::string("at no one message")) +
                  ", not at " + std::to_string(*wanted.offset));
  if (wanted.seen && std::ranges::find(*wanted.seen, halt.id) == wanted.seen->end())
    throw Refused(name_of(halt) + " was halted meanwhile, for " + halt.reason +
                  "; nothing was changed: look again");
}

// The checkpoint by the decision. Throws: Refused if there is nothing to decide on.
Rows change_checkpoint(Transaction& transaction, const Resumption& wanted, const Halt& halt) {
  const std::vector<Parameter> row = {wanted.group, wanted.topic, halt.partition};
  const auto with = [&](std::initializer_list<Parameter> more) {
    std::vector<Parameter> all = row;
    all.insert(all.end(), more);
    return all;
  };
  const auto need = [&](Rows rows, const char* why) {
    if (rows.empty()) throw Refused(name_of(halt) + ": " + why);
    return rows;
  };
  const std::string& decision = wanted.decision;
  const bool begins =
      decision == "accept_kafka" || decision == "recreated" || decision == "earliest";
  if (begins && wanted.scope.empty())
    throw Refused(name_of(halt) + ": no route of this configuration has the topic, and `" +
                  decision + "` needs the scope of its keys");
  if (decision == "accept_kafka")
    return need(transaction.run(sql::kStartAtKafka, with({wanted.scope})),
                "there is a checkpoint now; decide `retry`");
  if (decision == "same_topic" && halt.reason == "offset_above_end" && !halt.offset)
    throw Refused(
        name_of(halt) +
        ": the log ends below the checkpoint, so nothing can go on there. Decide `recreated`, "
        "then type `hapax offsets skip` with the end of the log. If an operator moved the "
        "checkpoint too far: `hapax offsets rewind`, then decide `retry`");
  if (decision == "same_topic")
    return need(transaction.run(sql::kStartAtCheckpoint, row),
                "no start was ever agreed here, so there is no checkpoint to go on at; decide "
                "`recreated` or `retry`");
  if (decision == "recreated") {
    // In another cluster it is another log by its name; the halted group's is not gone there.
    if (halt.reason != "other_cluster" && has_logs(transaction))
      transaction.run(sql::kNumberRecreated, with({wanted.scope, halt.generation}));
    return transaction.run(sql::kStartRecreated, with({wanted.scope, halt.generation + 1}));
  }
  if (decision == "earliest") return transaction.run(sql::kStartAtEarliest, with({wanted.scope}));
  const char* const gone = "its checkpoint is gone; decide `retry`";
  if (decision == "accept") return need(transaction.run(sql::kAcceptKeySpec, row), gone);
  if (decision == "call" || decision == "as_unknown")
    return need(transaction.run(sql::kDecideDoubt, with({decision})), gone);
  if (decision == "run")
    return need(transaction.run(sql::kLowerHighest, with({*halt.offset})), gone);
  if (halt.whole_route)
    return transaction.run(sql::kBumpEpoch, {wanted.group, wanted.topic, nullptr});
  return transaction.run(sql::kBumpEpoch, row);
}

void change_checkpoints(Transaction& transaction, const Resumption& wanted,
                        const std::vector<Halt>& halts, json& facts) {
  Parameter only(wanted.partition);
  add_rows(facts["before"],
           transaction.run(sql::kLockCheckpoints, {wanted.group, wanted.topic, only}));
  // If the whole route is halted its decision moves every partition's epoch; once is enough.
  for (const Halt& halt : halts)
    add_rows(facts["after"], change_checkpoint(transaction, wanted, halt));
}

bool is_same_database(const json& row, const json& other) {
  return row.at("database_oid") == other.at("database_oid") &&
         row.at("system_identifier") == other.at("system_identifier");
}

// A copy has no records, and the original's stand as before.
void settle_outbox_halts(Transaction& transaction, bool copy, const Resumption& wanted,
                         json& facts) {
  if (transaction.run("SELECT to_regclass('hapax.outbox_halts')")[0][0].is_null()) return;
  if (copy)
    add_rows(facts["ended_outbox_halts"],
             transaction.run(sql::kEndCopiedOutboxHalts, {wanted.who, wanted.why}));
  else
    facts["open_outbox_halts"] =
        transaction.run(sql::kCountOpenOutboxHalts, {})[0][0].as<std::int64_t>();
}

void adopt_database(Transaction& transaction, bool copy, json& facts) {
  add_rows(facts["before"], transaction.run(sql::kLockStore, {}));
  add_rows(facts["after"], transaction.run(sql::kAdoptDatabase, {copy}));
  if (!copy) return;
  add_rows(facts["deleted_checkpoints"], transaction.run(sql::kDeleteCheckpoints, {}));
  if (!transaction.run("SELECT to_regclass('hapax.doubts')")[0][0].is_null())
    facts["deleted_doubts"] = transaction.run("DELETE FROM hapax.doubts").affected();
  if (has_logs(transaction)) transaction.run("DELETE FROM hapax.passed");  // of those checkpoints
  // The original publishes its records and runs its replays; a copy must not do it again.
  if (!transaction.run("SELECT to_regclass('hapax.replays')")[0][0].is_null())
    facts["cancelled_replays"] = transaction
                                     .run(
                                         "UPDATE hapax.replays SET ended_at = clock_timestamp(), "
                                         "outcome = 'cancelled', claimed_until = NULL, detail = "
                                         "'the database became a copy' WHERE ended_at IS NULL")
                                     .affected();
  if (!transaction
           .run("SELECT FROM pg_attribute WHERE attrelid = to_regclass('hapax.dead_letters') "
                "AND attname = 'published_at'")
           .empty())
    facts["letters_left_to_the_original"] =
        transaction
            .run(
                "UPDATE hapax.dead_letters SET published_at = clock_timestamp() "
                "WHERE published_at IS NULL AND ended_at IS NULL")
            .affected();
  transaction.run(sql::kNameRemoval, {"left"});
  if (!transaction.run("SELECT to_regclass('hapax.outbox')")[0][0].is_null())
    facts["deleted_outbox"] = transaction.run("DELETE FROM hapax.outbox").affected();
  if (!transaction.run("SELECT to_regclass('hapax.outbox_batches')")[0][0].is_null())
    transaction.run("DELETE FROM hapax.outbox_batches");
  // A relay that comes back has records of the original in hand.
  transaction.run("DELETE FROM hapax.leases WHERE name LIKE 'outbox of %'");
}

json json_of(const Halt& halt) {
  return {{"id", halt.id},
          {"topic", halt.topic},
          {"partition", halt.partition},
          {"whole_route", halt.whole_route},
          {"generation", halt.generation},
          {"offset", halt.offset ? json(*halt.offset) : json(nullptr)},
          {"reason", halt.reason},
          {"detail", halt.detail},
          {"since", halt.since},
          {"halted_by", halt.halted_by}};
}

}  // namespace

Resumed resume(Session& session, const Resumption& wanted) {
  const Decision* const decision = decision_named(wanted.decision);
  if (decision == nullptr) throw Refused("there is no decision `" + wanted.decision + "`");
  const bool database = is_about_database(*decision);
  // The database may be a copy although no partition is halted: a gate consumes none.
  const bool nothing_named = database && wanted.topic.empty();

  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  Resumed resumed;
  const Rows named = transaction.run(
      sql::kLockHalts,
      {wanted.group, wanted.topic, Parameter(wanted.partition), Parameter(wanted.offset)});
  for (const Row row : named) resumed.halts.push_back(halt_of(row));
  if (resumed.halts.empty() && !nothing_named) return resumed;
  for (const Halt& halt : resumed.halts) {
    refuse_unfit(*decision, halt);
    refuse_unseen(wanted, halt);
  }

  json& facts = resumed.facts;
  facts = {{"halts", json::array()}, {"before", json::array()}, {"after", json::array()}};
  if (database) {
    resumed.halts.clear();
    for (const Row row : transaction.run(sql::kLockCopiedHalts, {}))
      resumed.halts.push_back(halt_of(row));
    adopt_database(transaction, decision->name == "copy", facts);
    settle_outbox_halts(transaction, decision->name == "copy", wanted, facts);
    if (nothing_named && is_same_database(facts["before"][0], facts["after"][0]))
      throw Refused("this database is the original: there is nothing to decide");
  } else {
    change_checkpoints(transaction, wanted, resumed.halts, facts);
  }
  for (const Halt& halt : resumed.halts) {
    facts["halts"].push_back(json_of(halt));
    transaction.run(sql::kEndHalt, {halt.id, wanted.who, wanted.why, wanted.decision});
  }
  const std::string target =
      nothing_named ? "database"
                    : wanted.group + " " + wanted.topic +
                          (wanted.partition ? "/" + std::to_string(*wanted.partition) : "");
  log_operation(transaction, {wanted.who, "resume " + wanted.decision, target, wanted.why, facts});
  if (!wanted.dry_run) transaction.commit();
  return resumed;
}

}  // namespace hapax::store
