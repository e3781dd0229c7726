// What retention has forgotten is a fact, by any hand that removes the keys (migration 8).
#include <gtest/gtest.h>

#include "store/operator/migrate.hpp"
#include "store/transaction.hpp"
#include "store/worker/retention.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Forgotten : public testing::Test {
 protected:
  // A key that ended `minutes` ago and has expired.
  void key(const std::string& scope, const std::string& status, int minutes) {
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, updated_at, expires_at) SELECT 'k' || count(*), '" +
        scope + "', '" + status + "', 'group', 'payments', 1, 0, count(*), " + ago(minutes) +
        ", now() - interval '1s' FROM hapax.idempotency_keys");
  }

  static std::string ago(int minutes) {
    return "date_trunc('hour', now()) - interval '" + std::to_string(minutes) + " min'";
  }

  std::size_t expire() { return expire_keys(session, 100, "-infinity", {}, "infinity").keys; }

  // Minutes ago, as ago() counts them.
  std::string notes() {
    return database.value(
        "SELECT scope, (extract(epoch FROM date_trunc('hour', now()) - until) / 60)::int FROM "
        "hapax.forgotten ORDER BY scope");
  }

  test::Database database;
  Session session{database.worker()};
};

TEST_F(Forgotten, IsTheNewestCompletionOfEachScopeWhoseKeyWasRemoved) {
  key("a", "completed", 30);
  key("a", "completed", 20);
  key("a", "failed", 5);
  key("b", "completed", 40);
  key("c", "failed", 5);
  key("d", "forgotten", 5);
  EXPECT_EQ(notes(), "");
  EXPECT_EQ(expire(), 6U);
  EXPECT_EQ(notes(), "a|20\nb|40");
  key("a", "completed", 50);
  key("b", "completed", 10);
  EXPECT_EQ(expire(), 2U);
  EXPECT_EQ(notes(), "a|20\nb|10");
  Transaction transaction(session);
  EXPECT_EQ(forgotten_until(transaction, "c"), "-infinity");
  EXPECT_EQ(database.value("SELECT '" + forgotten_until(transaction, "b") + "' = " + ago(10)), "t");
}

TEST_F(Forgotten, IsTheSameTimeInEachStyleOfDates) {
  database.run(
      "ALTER DATABASE " + database.name() + " SET timezone TO 'Europe/Dublin'; ALTER DATABASE " +
      database.name() +
      " SET datestyle TO 'SQL'; INSERT INTO hapax.forgotten VALUES ('a', '2026-07-01 12:00Z')");
  Session later(database.worker());
  Transaction transaction(later);
  const std::string until = forgotten_until(transaction, "a");
  EXPECT_EQ(
      transaction.run("SELECT '" + until + "'::timestamptz = '2026-07-01 12:00Z'")[0][0].text(),
      "t")
      << until;
}

// Its role has no rights on the new table.
TEST_F(Forgotten, IsNotedForAWorkerOfTheSchemaBefore) {
  database.run("REVOKE ALL ON hapax.forgotten FROM hapax_worker");
  key("a", "completed", 20);
  EXPECT_EQ(expire(), 1U);
  EXPECT_EQ(notes(), "a|20");
}

TEST_F(Forgotten, IsNothingIfKeysAreNotRemovedAfterAll) {
  key("a", "completed", 20);
  {
    Transaction transaction(session);
    transaction.run(std::string("DELETE FROM hapax.idempotency_keys"));
  }
  EXPECT_EQ(notes(), "");
}

TEST_F(Forgotten, IsUnknownBeforeTheMigrationAndEverythingUntilItAfterwards) {
  Session owner(database.owner());
  migrate_down(owner, 7);
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, key_spec, scope) VALUES "
      "('group', 'payments', 0, '', 'a'), ('group', 'payments', 1, '', 'a'), ('other', 'x', 0, '', "
      "'b')");
  {
    Transaction transaction(session);
    EXPECT_EQ(forgotten_until(transaction, "a"), "-infinity");
  }
  migrate_up(owner);
  EXPECT_EQ(database.value("SELECT scope, until > now() - interval '1 min' FROM hapax.forgotten "
                           "ORDER BY scope"),
            "a|t\nb|t");
}

}  // namespace
}  // namespace hapax::store
