// What PostgreSQL counts of published records: each is counted once, and in one way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/outbox_sums.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/migrate.hpp"
#include "store/operator/outbox_orders.hpp"
#include "store/operator/resume.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using namespace std::chrono_literals;

class OutboxCounts : public testing::Test {
 protected:
  // As a handler leaves them, as the worker's role.
  void publish(const std::string& topic, int count) {
    Transaction transaction(session);
    transaction.run(insert_of(topic, count));
    transaction.commit();
  }
  static std::string insert_of(const std::string& topic, int count) {
    return "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
           "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
           "SELECT 'g', '" +
           topic + "', 'k', 'p', '[]', 'x', 's', 1, 0, n FROM generate_series(1, " +
           std::to_string(count) + ") n";
  }
  OutboxLease lease() {
    return *take_outbox_lease(session, "g", "relay", read_store(session).incarnation, 10s);
  }
  // Each topic as topic:published=sent+skipped+left+unsent, and what is wrong.
  std::string sums() {
    const auto sums = app::read_outbox_sums(session, "g");
    std::string text;
    for (const Json& row : sums.topics) {
      text += (text.empty() ? "" : " ") + row.at("topic").get<std::string>() + ":" +
              row.at("published").dump() + "=" + row.at("sent").dump() + "+" +
              row.at("skipped").dump() + "+" + row.at("left_to_original").dump() + "+" +
              row.at("unsent").dump();
      if (row.at("removed") != 0) text += " removed " + row.at("removed").dump();
      if (row.at("missing") != 0) text += " missing " + row.at("missing").dump();
    }
    return text + (sums.fit ? "" : " does not fit");
  }

  test::Database database;
  Session session{database.worker()};
};

TEST_F(OutboxCounts, ARecordIsPublishedWithItsTransactionAndSentOnceTheRelayRemovesIt) {
  EXPECT_EQ(sums(), "");
  publish("a", 3);
  publish("b", 1);
  {
    Transaction transaction(session);
    transaction.run(insert_of("a", 5));
  }
  EXPECT_EQ(sums(), "a:3=0+0+0+3 b:1=0+0+0+1");
  OutboxStep step{{}, {{"a", 1}, {"a", 2}, {"a", 2}, {"b", 4}, {"b", 99}}, 100, 1 << 20, 10s};
  ASSERT_TRUE(step_outbox(session, lease(), step));
  EXPECT_EQ(sums(), "a:3=2+0+0+1 b:1=1+0+0+0");
  ASSERT_TRUE(step_outbox(session, lease(), step)) << "again, as after a lost answer";
  EXPECT_EQ(sums(), "a:3=2+0+0+1 b:1=1+0+0+0");
}

TEST_F(OutboxCounts, ABatchIsSentOnceItIsSettled) {
  publish("a", 4);
  const OutboxLease mine = lease();
  OutboxStep step{{}, {}, 100, 1 << 20, 10s};
  const std::string token = "00000000-0000-4000-8000-000000000001";
  step.next = {{.topic = "a", .token = token, .follows = token, .above = 0, .ids = {1, 2, 3}}};
  ASSERT_TRUE(step_outbox(session, mine, step));
  EXPECT_EQ(sums(), "a:4=0+0+0+4");
  step.next.clear();
  step.settled = {{.topic = "a", .token = token, .sent = true}};
  ASSERT_TRUE(step_outbox(session, mine, step));
  EXPECT_EQ(sums(), "a:4=3+0+0+1");
}

TEST_F(OutboxCounts, WhatAnOperatorSkipsIsNotCountedAsSent) {
  publish("a", 2);
  database.run(
      "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
      "halted_by) VALUES ('g', 'a', 1, 'k', 'record_refused', 'no', 'w')");
  Session decider(database.make_operator());
  skip_outbox(decider, {"g", "ann", "not wanted", true}, {1});
  EXPECT_EQ(sums(), "a:2=0+0+0+2") << "a dry run";
  skip_outbox(decider, {"g", "ann", "sent by hand"}, {1});
  EXPECT_EQ(sums(), "a:2=0+1+0+1");
}

TEST_F(OutboxCounts, WhatACopyLeavesToTheOriginalIsNotCountedAsSent) {
  publish("a", 2);
  database.run("UPDATE hapax.store SET database_oid = 1");
  Session owner(database.owner());
  resume(owner, {"g", "", {}, "copy", "ann", "restored", "", false});
  EXPECT_EQ(sums(), "a:2=0+0+2+0");
}

TEST_F(OutboxCounts, ARowThatSomeoneRemovesByHandIsToldWithRoleProgramAndIds) {
  publish("a", 3);
  {
    Transaction transaction(session);
    transaction.run("DELETE FROM hapax.outbox WHERE id > 1");
    transaction.commit();
  }
  EXPECT_EQ(sums(), "a:3=0+0+0+1 removed 2 does not fit");
  const Json told = read_outbox_removals(session, "g", 5);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0].at("by").get<std::string>(),
              testing::AllOf(testing::HasSubstr("role hapax_worker, application_name \"hapax"),
                             testing::HasSubstr("ids 2 to 3")));
}

// Neither of them fires a trigger of a row or of a statement.
TEST_F(OutboxCounts, RowsThatVanishWithoutATriggerAreMissing) {
  publish("a", 3);
  publish("b", 2);
  database.run("SET session_replication_role = replica; DELETE FROM hapax.outbox WHERE id = 1");
  EXPECT_EQ(sums(), "a:3=0+0+0+2 missing 1 b:2=0+0+0+2 does not fit");
  database.run("TRUNCATE hapax.outbox");
  EXPECT_EQ(sums(), "a:3=0+0+0+0 missing 3 b:2=0+0+0+0 missing 2 does not fit");
}

// Another group's relay has no lease on these rows.
TEST_F(OutboxCounts, TheLeaseOfAnotherGroupMakesNoRemovalASending) {
  publish("a", 1);
  const auto other =
      *take_outbox_lease(session, "other", "relay", read_store(session).incarnation, 10s);
  Transaction transaction(session);
  ASSERT_TRUE(fence_outbox(transaction, other, 10s));
  transaction.run("DELETE FROM hapax.outbox");
  transaction.commit();
  EXPECT_EQ(sums(), "a:1=0+0+0+0 removed 1 does not fit");
}

TEST_F(OutboxCounts, FoldingChangesNoSum) {
  for (int n = 0; n < 150; ++n) publish("a", 2);
  publish("b", 1);
  database.run("UPDATE hapax.outbox_counts SET at = '2026-01-01' WHERE ctid = '(0,1)'");
  const auto rows = [&] { return database.count("SELECT count(*) FROM hapax.outbox_counts"); };
  const Json before = read_outbox_counts(session, "g");
  EXPECT_EQ(rows(), 151);
  fold_outbox_counts(session, "other");
  EXPECT_EQ(rows(), 151);
  fold_outbox_counts(session, "g");
  EXPECT_EQ(rows(), 2);
  EXPECT_EQ(read_outbox_counts(session, "g"), before);
}

TEST_F(OutboxCounts, CountsWhatWaitedWhenTheMigrationCame) {
  Session owner(database.owner());
  migrate_down(owner, 19);
  publish("a", 3);
  fold_outbox_counts(session, "g");  // the schema before has nothing to fold
  migrate_up(owner);
  EXPECT_EQ(sums(), "a:3=0+0+0+3");
}

}  // namespace
}  // namespace hapax::store
