// Keys that a partition holds may be many, and stand before those that may go.
#include <gtest/gtest.h>

#include "store/transaction.hpp"
#include "store/worker/retention.hpp"
#include "support/database.hpp"
#include "worker/retention.hpp"

namespace hapax::store {
namespace {

constexpr int kHeldKeys = 20'000;
constexpr std::size_t kStep = 1'000;

class ExpireKeys : public testing::Test {
 protected:
  // 20,000 expired keys of `held`, whose partition waits, then ten of `free`, whose partition has
  // settled all. `every`: PostgreSQL's interval between two of them.
  void fill(const std::string& every) {
    database.run(
        "ALTER TABLE hapax.idempotency_keys SET (autovacuum_enabled = off);"
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at) SELECT n, CASE WHEN n <= " +
        std::to_string(kHeldKeys) +
        " THEN 'held' ELSE 'free' END, 'completed', 'g', 't', 1, 0, n, now() - interval '1 hour' + "
        "n * interval '" +
        every + "' FROM generate_series(1, " + std::to_string(kHeldKeys + 10) +
        ") n;"
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope, "
        "next_offset) VALUES ('g', 'held', 0, 1, '', 'held', 0), ('g', 'free', 0, 1, '', 'free', "
        "0);"
        "INSERT INTO hapax.passed (group_id, topic, partition, epoch, until) VALUES ('g', 'held', "
        "0, 1, now() - interval '2 hours'), ('g', 'free', 0, 1, now())");
  }

  int keys_of(const std::string& scope) {
    return database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE scope = '" + scope +
                          "'");
  }

  // Rows and index entries that scans have read so far, in all sessions.
  int read_so_far(Session& session) {
    Transaction transaction(session);
    transaction.run(std::string("SELECT pg_stat_force_next_flush()"));
    transaction.commit();
    return database.count(
        "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = "
        "'idempotency_keys'");
  }

  worker::RetentionSetup setup() {
    return {.connect = [this] { return Session(database.worker()); },
            .group = "g",
            .worker_name = "w",
            .held = [] { return HeldLogs(); },
            .ends = [](const auto&) { return std::map<TopicPartition, std::int64_t>(); },
            .metrics = metrics};
  }

  test::Database database;
  observe::Metrics metrics{{}};
};

TEST_F(ExpireKeys, LooksAtABoundedNumberOfKeysInEachStep) {
  fill("1 microsecond");
  Session session(database.worker());
  const auto scopes = read_held_scopes(session, database.value("SELECT now()::text"));
  ASSERT_EQ(scopes.size(), 2U);
  std::string from = "-infinity";
  int steps = 0;
  std::size_t removed = 0;
  for (Removed step{0, kStep, from}; step.looked_at >= kStep; from = step.next) {
    ASSERT_LT(++steps, 30);
    const int before = read_so_far(session);
    step = expire_keys(session, kStep, from, scopes);
    EXPECT_LE(read_so_far(session) - before, 2 * static_cast<int>(kStep)) << "in step " << steps;
    removed += step.keys;
  }
  EXPECT_EQ(removed, 10U);
  EXPECT_EQ(keys_of("free"), 0);
  EXPECT_EQ(keys_of("held"), kHeldKeys);
}

TEST_F(ExpireKeys, PassesKeysThatExpiredTogether) {
  fill("0");
  Session session(database.worker());
  const auto scopes = read_held_scopes(session, database.value("SELECT now()::text"));
  const Removed removed = expire_keys(session, kStep, "-infinity", scopes);
  EXPECT_EQ(removed.keys, 10U);
  EXPECT_EQ(expire_keys(session, kStep, removed.next, scopes).looked_at, 0U);
}

// In another style than ISO, PostgreSQL writes a time zone by its abbreviation. It reads CST as
// America's.
TEST_F(ExpireKeys, ExpireByTheSameTimeInEachStyleOfDatesAndEachZone) {
  database.run(
      "ALTER DATABASE " + database.name() + " SET timezone TO 'Asia/Shanghai'; ALTER DATABASE " +
      database.name() +
      " SET datestyle TO 'SQL, DMY';"
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope, "
      "next_offset) VALUES ('g', 't', 0, 1, '', 'held', 0);"
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) SELECT n, scope, 'completed', 'g', 't', 1, 0, n, "
      "now() + n * interval '1 hour' FROM unnest('{held, free}'::text[]) AS scope, "
      "generate_series(-2, 13) n WHERE n <> 0");
  Session session(database.worker());
  const std::string now =
      read_clock(session, std::chrono::system_clock::now(), std::chrono::minutes(5)).now;
  EXPECT_EQ(note_passed(session, "g", {{{"t", 0}, 1, 0, now}}).size(), 1U);
  const auto scopes = read_held_scopes(session, now);
  const Removed first = expire_keys(session, 1, "-infinity", scopes, now);
  EXPECT_EQ(first.keys, 2U);  // expired in the same microsecond
  EXPECT_EQ(expire_keys(session, kStep, first.next, scopes, now).keys, 2U);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE expires_at > now()"),
            26);
}

TEST_F(ExpireKeys, OfAScopeGoThoughThoseOfAnotherAreHeld) {
  fill("1 microsecond");
  const worker::Retention retention(setup());
  database.wait_until("SELECT count(*) FROM hapax.idempotency_keys WHERE scope = 'free'", "0");
  EXPECT_EQ(keys_of("held"), kHeldKeys);
}

// Kafka has lost the end of partition 0, and the worker has not noticed yet. What producers have
// sent since stands below the checkpoint.
TEST_F(ExpireKeys, AreHeldByAPartitionWhoseLogEndsBelowItsCheckpoint) {
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope, "
      "next_offset) SELECT 'h', 't', n, 3, '', 's', 10 FROM generate_series(0, 1) n");
  worker::RetentionSetup both = setup();
  both.group = "h";
  both.held = [] { return HeldLogs{{{"t", 0}, {3, 10}}, {{"t", 1}, {3, 9}}}; };
  both.ends = [](const auto&) {
    return std::map<TopicPartition, std::int64_t>{{{"t", 0}, 7}, {{"t", 1}, 9}};
  };
  const worker::Retention retention(both);
  database.wait_until("SELECT count(*) FROM hapax.leases WHERE name = 'retention'", "1");
  EXPECT_EQ(database.value("SELECT string_agg(partition::text, ' ') FROM hapax.passed "
                           "WHERE group_id = 'h'"),
            "1");
}

// Workers of a partition that lags write checkpoints, and it may change hands.
TEST_F(ExpireKeys, AreHeldSinceTheirPartitionWasPassedThoughItsCheckpointMoves) {
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope, "
      "next_offset, updated_at) VALUES ('g', 'moves', 0, 2, '', 'moves', 5, now()), ('g', 'taken', "
      "0, 3, '', 'taken', 5, now()), ('g', 'taken', 1, 3, '', 'taken', 5, now() - interval '1 "
      "minute'), ('g', 'new', 0, 1, '', 'new', 5, now() - interval '3 hours');"
      "INSERT INTO hapax.passed (group_id, topic, partition, epoch, until) VALUES ('g', 'moves', "
      "0, 2, now() - interval '5 hours'), ('g', 'taken', 0, 2, now() - interval '7 hours'), ('g', "
      "'taken', 1, 2, now() - interval '1 hour')");
  Session session(database.worker());
  std::map<std::string, std::int64_t> hours;
  for (const HeldScope& scope : read_held_scopes(session, database.value("SELECT now()::text"))) {
    hours[scope.scope] = scope.since.count() / 3600;
    EXPECT_EQ(scope.partition.second, 0);
    EXPECT_EQ(scope.until == "-infinity", scope.scope != "moves");
  }
  EXPECT_EQ(hours, (std::map<std::string, std::int64_t>{{"moves", 5}, {"new", 3}, {"taken", 7}}));
}

// Each scope has a time of its own, before which its keys may go. Keys of all scopes lie between
// each other.
TEST_F(ExpireKeys, OfManyScopesAreLookedAtOnce) {
  constexpr int kScopes = 20, kEach = 2'000;
  const std::string scopes = std::to_string(kScopes);
  database.run(
      "ALTER TABLE hapax.idempotency_keys SET (autovacuum_enabled = off);"
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope, "
      "next_offset) SELECT 'g', n, 0, 1, '', n, 0 FROM generate_series(1, " +
      scopes +
      ") n; INSERT INTO hapax.passed (group_id, topic, partition, epoch, until) SELECT 'g', n, 0, "
      "1, now() - interval '1 hour' FROM generate_series(1, " +
      scopes + ") n");
  Session session(database.worker());
  const worker::Retention retention(setup());
  // The first round looks at all keys, and goes on from there later.
  database.wait_until("SELECT count(*) FROM hapax.leases WHERE name = 'retention'", "1");
  const int before = read_so_far(session);
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) SELECT n, n % " +
      scopes +
      " + 1, 'completed', 'g', 't', 1, 0, n, now() - interval '50 minutes' + n * interval '1 "
      "microsecond' FROM generate_series(1, " +
      std::to_string(kScopes * kEach) +
      ") n; UPDATE hapax.passed SET until = now() - interval '1 minute' + topic::int * interval "
      "'1 second'");
  database.wait_until("SELECT EXISTS (SELECT FROM hapax.idempotency_keys)", "f");
  EXPECT_LE(read_so_far(session) - before, 3 * kScopes * kEach);
}

}  // namespace
}  // namespace hapax::store
