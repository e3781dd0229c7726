// What explain and audit read, asked as the worker's role.
#include "store/operator/account.hpp"

#include <gtest/gtest.h>

#include <list>

#include "support/database.hpp"

namespace hapax::store {
namespace {

class MessageAccounts : public testing::Test {
 protected:
  // Rows (of `columns`, quoted by the caller) for offsets [0, count) of group g, topic t/0.
  void insert(const std::string& table, const std::string& columns, const std::string& values,
              int count) {
    database.run("INSERT INTO hapax." + table +
                 " (group_id, topic, generation, partition, kafka_offset, " + columns +
                 ") SELECT 'g', 't', 1, 0, n, " + values + " FROM generate_series(0, " +
                 std::to_string(count - 1) + ") n");
  }
  void insert_keys(int count) {
    insert("idempotency_keys", "key, scope, status, fingerprint, fingerprint_rule, expires_at",
           "'k' || n, 's', 'completed', '\\x0102', 'payload', now()", count);
  }
  void insert_letters(int count) {
    insert("dead_letters",
           "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
           "handler_version, scope, first_at",
           "'none', '{}', '{}', 'rejected', 'no', 1, 'h', '1', 's', now()", count);
  }
  void insert_attempts(int count) {
    insert("attempts", "count, last_error, handler, next_try", "2, 'no', 'h', now()", count);
  }

  std::vector<std::optional<KeyRow>> keys(const std::vector<std::string>& names,
                                          const std::string& tenant = {}) {
    std::list<key::Identity> identities;
    std::vector<const key::Identity*> pointers;
    for (const std::string& name : names)
      pointers.push_back(&identities.emplace_back(key::Identity{name, tenant, {}}));
    return read_key_rows(session, "s", pointers);
  }

  Stretch stretch(std::int64_t from, std::int64_t to, std::int32_t generation = 1) {
    return {"g", {"t", 0}, generation, from, to};
  }

  test::Database database;
  Session session{database.worker()};
};

TEST_F(MessageAccounts, OfKeysComeInTheOrderAskedRepeatedOnesToo) {
  insert_keys(3);
  const auto found = keys({"k2", "none", "k0", "k2"});
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0]->holder.offset, 2);
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(found[2]->holder.offset, 0);
  EXPECT_EQ(found[3]->holder.offset, 2);
  EXPECT_EQ(found[0]->holder.status, "completed");
  EXPECT_EQ(found[0]->holder.fingerprint, (key::Fingerprint{"\x01\x02", "payload"}));
  EXPECT_TRUE(keys({}).empty());
  EXPECT_FALSE(keys({"k2"}, "tenant")[0]);
}

TEST_F(MessageAccounts, OfKeysKeepTheirBytes) {
  const std::vector<std::string> odd = {"it's", "a\\b", "a\"b", "{a,b}", "NULL", "", " ", "ä€😀"};
  insert_keys(1);
  for (const std::string& name : odd) {
    session = Session(database.worker());
    Transaction transaction(session);
    transaction.run(session.execute(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at) VALUES ($1, 's', 'failed', 'g', 't', 1, 0, 7, now())",
        {name}));
    transaction.commit();
  }
  for (const auto& found : keys(odd)) {
    ASSERT_TRUE(found);
    EXPECT_EQ(found->holder.offset, 7);
  }
}

TEST_F(MessageAccounts, OfKeysTellWhichChangedHands) {
  insert_keys(2);
  database.run(
      "UPDATE hapax.idempotency_keys SET status = 'forgotten', updated_at = now() "
      "WHERE key = 'k1'");
  const auto found = keys({"k0", "k1"});
  EXPECT_FALSE(found[0]->retaken);
  EXPECT_TRUE(found[1]->retaken);
}

TEST_F(MessageAccounts, OfCoordinatesAreThoseOfTheStretchTheGroupAndTheGeneration) {
  insert_letters(10);
  insert_attempts(10);
  database.run(
      "UPDATE hapax.dead_letters SET generation = 2 WHERE kafka_offset = 4;"
      "UPDATE hapax.dead_letters SET group_id = 'h' WHERE kafka_offset = 5;"
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded', "
      "ended_by = 'anna', ended_why = 'old' WHERE kafka_offset = 6");
  const auto letters = read_dead_rows(session, stretch(3, 8));
  ASSERT_EQ(letters.size(), 3U);
  EXPECT_EQ(letters.at(3).reason, "rejected");
  EXPECT_FALSE(letters.at(3).ended_as);
  EXPECT_EQ(letters.at(6).ended_by, "anna");
  EXPECT_EQ(read_dead_rows(session, stretch(0, 10, 2)).size(), 1U);
  EXPECT_EQ(read_attempt_rows(session, stretch(3, 8)).size(), 5U);
  EXPECT_EQ(read_attempt_rows(session, stretch(3, 8)).at(7).count, 2);
}

TEST_F(MessageAccounts, OfJumpsComeOldestFirst) {
  for (const char* const jump : {"NULL, 5, 'first_start'", "9, 7, 'rewind'"})
    database.run(
        "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, who, "
        "why, from_offset, to_offset, cause) VALUES ('g', 't', 0, 1, 'anna', 'so', " +
        std::string(jump) + ")");
  const auto jumps = read_jumps(session, "g", {"t", 0}, 1);
  ASSERT_EQ(jumps.size(), 2U);
  EXPECT_FALSE(jumps[0].from);
  EXPECT_EQ(jumps[0].to, 5);
  EXPECT_EQ(jumps[1].from, 9);
  EXPECT_EQ(jumps[1].who, "anna");
  EXPECT_TRUE(read_jumps(session, "g", {"t", 0}, 2).empty());
  EXPECT_TRUE(read_jumps(session, "g", {"t", 1}, 1).empty());
}

TEST_F(MessageAccounts, HaveTheLastDecisionToGoOnInALogThatLostItsEnd) {
  EXPECT_FALSE(read_same_topic(session, "g", {"t", 0}, 1));
  for (const char* const halt :
       {"'offset_above_end', 'same_topic', 'anna'", "'offset_above_end', 'same_topic', 'bert'",
        "'offset_above_end', 'recreated', 'carl'", "'other_store', 'same_topic', 'dora'"})
    database.run(
        "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, detail, "
        "halted_by, ended_at, why, reason, decision, ended_by) VALUES ('g', 't', 0, false, 1, '', "
        "'w', now(), 'so', " +
        std::string(halt) + ")");
  const auto decided = read_same_topic(session, "g", {"t", 0}, 1);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->who + " " + decided->why, "bert so");
  EXPECT_FALSE(read_same_topic(session, "g", {"t", 0}, 2));
  EXPECT_FALSE(read_same_topic(session, "g", {"t", 1}, 1));
}

TEST_F(MessageAccounts, OfADeadLettersReplaysAreRead) {
  insert_letters(1);
  database.run(
      "INSERT INTO hapax.replays (dead_letter, who, why) "
      "SELECT id, 'anna', 'mended' FROM hapax.dead_letters");
  const auto id = read_dead_rows(session, stretch(0, 1)).at(0).id;
  ASSERT_EQ(read_replays_of(session, id).size(), 1U);
  EXPECT_EQ(read_replays_of(session, id)[0].at("who"), "anna");
}

// PostgreSQL once read a whole table for every batch, with a plan made while it was empty.
TEST_F(MessageAccounts, ReadWhatTheyGiveUnderAnyStatistics) {
  constexpr int kRows = 20'000;
  for (const char* const table : {"idempotency_keys", "dead_letters", "attempts"})
    database.run("ALTER TABLE hapax." + std::string(table) + " SET (autovacuum_enabled = off)");
  const auto ask = [&](int from) {
    std::vector<std::string> names;
    for (int i = from; i < from + 100; ++i) names.push_back("k" + std::to_string(i));
    for (const auto& found : keys(names)) EXPECT_EQ(found.has_value(), from < kRows);
    const std::size_t there = from < kRows ? 100 : 0;
    EXPECT_EQ(read_dead_rows(session, stretch(from, from + 100)).size(), there);
    EXPECT_EQ(read_attempt_rows(session, stretch(from, from + 100)).size(), there);
  };
  for (int i = 0; i < 10; ++i) ask(kRows);  // generic plans are made now, of empty tables
  insert_keys(kRows);
  insert_letters(kRows);
  insert_attempts(kRows);
  for (int from = 0; from < 1'000; from += 100) ask(from);
  Transaction transaction(session);
  transaction.run(std::string("SELECT pg_stat_force_next_flush()"));
  transaction.commit();
  EXPECT_LT(database.count("SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM "
                           "pg_stat_user_tables WHERE relname IN ('idempotency_keys', "
                           "'dead_letters', 'attempts')"),
            3 * 1'000 + 100);
}

}  // namespace
}  // namespace hapax::store
