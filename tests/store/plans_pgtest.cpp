// Plans on a table that is fresh and never analyzed. If a plan was made while the table was empty,
// PostgreSQL could read the whole table for each message.
#include <gtest/gtest.h>

#include <list>

#include "store/message/claim.hpp"
#include "store/message/claim_batch.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

constexpr int kKeys = 20'000;
constexpr int kPerTransaction = 1'000;

class Plans : public testing::Test {
 protected:
  Plans() : session(database.worker()) {
    database.run("ALTER TABLE hapax.idempotency_keys SET (autovacuum_enabled = off)");
  }

  // Claims keys [from, to) for `group`, each with a result; how many were new.
  int claim_all(int from, int to, const std::string& group) {
    const std::string scope = "booking";
    int fresh = 0;
    for (int begin = from; begin < to; begin += kPerTransaction) {
      Transaction transaction(session);
      std::string nonce;
      for (int i = begin; i < std::min(to, begin + kPerTransaction); ++i) {
        const key::Identity identity{
            "key-" + std::to_string(i), "", {std::string(32, 'f'), "payload"}};
        const Source source{group, "payments", 1, 0, i};
        const ClaimRequest request{identity, scope, source, std::chrono::hours(1)};
        const Claim claimed = claim(transaction, request);
        nonce = claimed.nonce;
        if (claimed.holder && claimed.holder->status == "completed") continue;
        if (claimed.holder && take_over(transaction, request, *claimed.holder) != TakeOver::ours)
          continue;
        ++fresh;
        transaction.run(std::string(
            session.execute("UPDATE hapax.idempotency_keys SET result = $4 WHERE key = $1 AND "
                            "scope = $2 AND tenant = $3",
                            {identity.key, scope, "", "{}"})));
      }
      transaction.run(std::string("SELECT hapax.seal('" + nonce + "')"));
      transaction.commit();
    }
    return fresh;
  }

  // Rows and index entries of a table that scans have read so far, in all sessions.
  int read_so_far(const std::string& table = "idempotency_keys") {
    flush();
    return database.count(
        "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '" + table +
        "') + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = '" + table + "')");
  }

  // Pages of the index of hapax.positions, likewise.
  int pages_so_far() {
    flush();
    return database.count(
        "SELECT idx_blks_read + idx_blks_hit FROM pg_statio_user_indexes WHERE indexrelname = "
        "'positions_pkey'");
  }

  void flush() {
    Transaction transaction(session);
    transaction.run(std::string("SELECT pg_stat_force_next_flush()"));
    transaction.commit();
  }

  test::Database database;
  Session session;
};

TEST_F(Plans, AreBoundedPerMessageOnATableThatGrewFromNothing) {
  claim_all(0, 20, "warm");  // generic plans are made now, from an empty table
  claim_all(0, 20, "warm");
  EXPECT_EQ(claim_all(0, kKeys, "first"), kKeys - 20);
  EXPECT_EQ(database.value("SELECT reltuples FROM pg_class WHERE oid = "
                           "'hapax.idempotency_keys'::regclass"),
            "-1");
  const int grown = read_so_far();
  EXPECT_LT(grown, 4 * kKeys);
  EXPECT_EQ(claim_all(0, kKeys, "again"), 0);
  EXPECT_LT(read_so_far() - grown, 4 * kKeys);
  database.run(
      "UPDATE hapax.idempotency_keys SET status = 'failed' WHERE kafka_offset < 2000;"
      "SELECT pg_stat_force_next_flush()");  // or what it read might count later
  const int before = read_so_far();
  EXPECT_EQ(claim_all(0, 2000, "third"), 2000);
  EXPECT_LT(read_so_far() - before, 12 * 2000);
}

TEST_F(Plans, OfBatchesAreBoundedToo) {
  const auto claim_batches = [&](int keys, const std::string& group) {
    const std::string scope = "booking";
    for (int begin = 0; begin < keys; begin += 100) {
      std::list<key::Identity> identities;
      std::list<Source> sources;
      std::vector<ClaimRequest> requests;
      for (int i = begin; i < begin + 100; ++i) {
        const auto& identity = identities.emplace_back(key::Identity{
            "key-" + std::to_string(1'000'000 + i), "", {std::string(32, 'f'), "payload"}});
        const auto& source = sources.emplace_back(Source{group, "payments", 1, 0, i});
        requests.push_back({identity, scope, source, std::chrono::hours(1)});
      }
      Transaction transaction(session);
      const BatchClaim claim = claim_batch(transaction, requests);
      std::vector<std::pair<std::size_t, std::string>> results;
      for (std::size_t n = 0; n < requests.size(); ++n)
        if (claim.keys[n].ours) results.emplace_back(n, R"({"booked": "it's \\ \"so\""})");
      add_results(transaction, requests, results);
      seal(transaction, claim.nonce);
    }
  };
  claim_batches(1'000, "first");
  claim_batches(1'000, "warm");  // generic plans are made now
  const int warm = read_so_far();
  claim_batches(kKeys, "second");
  claim_batches(kKeys, "third");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.idempotency_keys"), kKeys);
  EXPECT_EQ(database.value("SELECT DISTINCT result->>'booked' FROM hapax.idempotency_keys"),
            R"(it's \ "so")");
  EXPECT_LT(read_so_far() - warm, 8 * kKeys);
}

TEST_F(Plans, OfCoordinatesAreBoundedToo) {
  Source source{"group", "payments", 1, 0, 0};
  {
    Transaction transaction(session);
    for (int i = 0; i < 10; ++i)
      known_coordinates(transaction, source, "booking", std::chrono::hours(1));
  }
  database.run(
      "ALTER TABLE hapax.attempts SET (autovacuum_enabled = off);"
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, "
      "count, last_error, handler, next_try) SELECT 'group', 'payments', 1, 0, n, 1, '', "
      "'h', now() FROM generate_series(1, 20000) n;"
      "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
      "to_offset, cause, who, why) VALUES ('group', 'payments', 0, 1, 0, 20001, 'skip', '', '')");
  Transaction transaction(session);
  for (int i = 1; i <= 1000; ++i) {
    source.offset = i;
    EXPECT_TRUE(known_coordinates(transaction, source, "booking", std::chrono::hours(1)).attempted);
  }
  transaction.run(std::string("SELECT pg_stat_force_next_flush()"));
  transaction.commit();
  EXPECT_LT(database.count("SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables "
                           "WHERE relname = 'attempts'"),
            5'000);
}

// Of a partition that has many below its highest checkpoint, and many of other generations.
TEST_F(Plans, OfDeadLettersAtAStartAreBoundedToo) {
  database.run(
      "ALTER TABLE hapax.dead_letters SET (autovacuum_enabled = off);"
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, key_spec, scope, epoch, highest) "
      "VALUES ('group', 'payments', 0, '', '', 1, 9990);"
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) SELECT 'group', 'payments', g, 0, n, 'none', '{}', '{}', "
      "'rejected', '', 1, 'h', '', 's', now() FROM generate_series(1, 9999) n, "
      "generate_series(1, 2) g");
  const Standing standing{{"payments", 0}, 1, 30};
  const int warm = read_so_far("dead_letters");
  for (int i = 0; i < 10; ++i) {
    auto known = read_known_messages(session, "group", {standing});
    EXPECT_EQ(known[standing.partition].letters.size(), 10U);
  }
  EXPECT_LT(read_so_far("dead_letters") - warm, 1'000);
}

// Until the snapshot ends, the index keeps an entry of each row that a checkpoint removed.
TEST_F(Plans, OfPositionsAreBoundedWhileAnOldSnapshotIsOpen) {
  database.run("ALTER TABLE hapax.positions SET (autovacuum_enabled = off)");
  const TopicPartition id{"payments", 0};
  Taking taking{"group", id, "w", "spec", "booking", 0, true};
  const auto start = [&](std::int64_t offset) {
    const std::int64_t epoch = take_partition(session, taking)->epoch;
    agree_start(session, taking, {epoch, offset, "cluster", ""});
    taking.read_epoch = epoch;
    return epoch;
  };
  const std::string incarnation = read_store(session).incarnation;
  const std::int64_t epoch = start(0);

  Session old(database.worker());
  Transaction snapshot(old);
  snapshot.run(std::string(
      "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM hapax.positions"));
  int pages = 0;
  for (std::int64_t from = 0; from < kKeys; from += kPerTransaction) {
    database.run(
        "INSERT INTO hapax.positions SELECT 'group', 'payments', 0, 1, n FROM generate_series(" +
        std::to_string(from) + ", " + std::to_string(from + kPerTransaction - 1) +
        ") n; SELECT pg_stat_force_next_flush()");
    const int before = pages_so_far();
    const std::int64_t next = from + kPerTransaction;
    ASSERT_EQ(
        write_checkpoints(session, "group", {{id, incarnation, epoch, from, next, true}}).size(),
        1U);
    pages = pages_so_far() - before;
  }
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.positions"), 0);
  EXPECT_LT(pages, 40) << "of the last checkpoint";

  const int before = read_so_far("positions");
  const std::int64_t again = start(kKeys);
  EXPECT_TRUE(
      read_known_messages(session, "group", {{id, 1, kKeys, true, again}})[id].settled.empty());
  EXPECT_LT(read_so_far("positions") - before, 100) << "of a start";
}

}  // namespace
}  // namespace hapax::store
