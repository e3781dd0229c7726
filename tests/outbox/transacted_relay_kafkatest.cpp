// Transactions on librdkafka's mock brokers, which know no isolation and keep no markers: what
// concerns partitions. The promise is tested against a real Kafka, in
// tests/e2e/outbox_transactions_e2etest.cpp.
#include <gtest/gtest.h>

#include "kafka/mock_cluster.hpp"
#include "outbox/relay_ground.hpp"

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

}  // namespace
}  // namespace hapax::outbox
