// Transactions on librdkafka's mock brokers, which know no isolation and keep no markers: what
// concerns partitions. The promise is tested against a real Kafka, in
// tests/e2e/outbox_transactions_e2etest.cpp.
#include <gtest/gtest.h>

#include "kafka/mock_cluster.hpp"
#include "outbox/relay_ground.hpp"
#include "store/transaction.hpp"

namespace hapax::outbox {
namespace {

struct TransactedCluster {
  TransactedCluster() { cluster.create_topic("receipts", 3); }
  kafka::MockCluster cluster;
};

class TransactedCase : protected TransactedCluster, public RelayGround {
 protected:
  TransactedCase() : RelayGround(cluster.bootstrap(), {{"receipts", 3}}) {}

  std::unique_ptr<Running> start() {
    RelaySetup with = setup();
    with.transactions = true;
    return std::make_unique<Running>(std::move(with), "w");
  }
};

TEST_F(TransactedCase, SendsEachRecordOnceInTheOrderOfItsKeyAndRemovesIt) {
  database.run(rows("receipts", 0, 6000));
  const auto relay = start();
  await_sent();
  expect_exact("receipts", 6000);
}

TEST_F(TransactedCase, HoldsBackOnlyTheRecordsOfAPartitionWithoutALeader) {
  cluster.set_led("receipts", 1, false);
  database.run(rows("receipts", 0, 1000));
  const auto relay = start();
  database.wait_until("SELECT count(*) < 1000 FROM hapax.outbox", "t");
  const int held = static_cast<int>(database.count("SELECT count(*) FROM hapax.outbox"));
  ASSERT_GT(held, 0);
  database.run(rows("receipts", 1000, 1000));  // as many of each key
  database.wait_until("SELECT count(*) FROM hapax.outbox", std::to_string(2 * held));
  cluster.set_led("receipts", 1, true);
  await_sent();
  expect_exact("receipts", 2000);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox_halts"), 0);
}

// The mock has no marker, so an open batch that is asked about halts its topic.
TEST_F(TransactedCase, AsksAboutAnOpenBatchThoughItsSessionDiesAtTheTakeOver) {
  database.run(rows("receipts", 0, 10));
  database.run(
      "INSERT INTO hapax.outbox_batches (group_id, topic, number, token, follows, ids) SELECT 'g',"
      " 'receipts', 1, gen_random_uuid(), gen_random_uuid(), array_agg(id) FROM hapax.outbox");
  store::Session holder(database.owner());
  store::Transaction held(holder);
  held.run("LOCK TABLE hapax.outbox_batches IN ACCESS EXCLUSIVE MODE");
  const auto relay = start();
  const std::string waiting =
      " FROM pg_locks WHERE NOT granted AND relation = 'hapax.outbox_batches'::regclass AND"
      " database = (SELECT oid FROM pg_database WHERE datname = current_database())";
  database.wait_until("SELECT count(*)" + waiting, "1");
  database.run("SELECT pg_terminate_backend(pid)" + waiting);
  held.rollback();
  database.wait_until("SELECT reason FROM hapax.outbox_halts", "marker_lost");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 10);
  EXPECT_TRUE(records("receipts").empty());
}

// The operator must know of the batch before the topic goes on. The mock has no marker.
TEST_F(TransactedCase, AHaltedTopicTellsThatTheMarkerOfItsBatchIsLost) {
  database.run(rows("receipts", 0, 10));
  database.run(
      "INSERT INTO hapax.outbox_batches (group_id, topic, number, token, follows, ids) SELECT 'g',"
      " 'receipts', 1, gen_random_uuid(), gen_random_uuid(), array_agg(id) FROM hapax.outbox;"
      "INSERT INTO hapax.outbox_halts (group_id, topic, reason, detail, halted_by) VALUES"
      " ('g', 'receipts', 'topic_refused', 'no right', 'w')");
  const auto relay = start();
  database.wait_until("SELECT count(*), min(reason) FROM hapax.outbox_halts", "1|marker_lost");
  EXPECT_EQ(database.value("SELECT detail LIKE '%batch 1 with 10 records%no right%' FROM "
                           "hapax.outbox_halts"),
            "t");
  database.wait_until("SELECT ids FROM hapax.outbox_batches", "{}");
}

}  // namespace
}  // namespace hapax::outbox
