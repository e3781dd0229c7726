// A relay that reaches another Kafka than the group's records went to. On librdkafka's mock
// brokers.
#include <gtest/gtest.h>

#include <fstream>

#include "kafka/mock_cluster.hpp"
#include "outbox/relay_ground.hpp"
#include "store/message/publications.hpp"
#include "store/operator/outbox_orders.hpp"

namespace hapax::outbox {
namespace {

struct TwoClusters {
  TwoClusters() {
    for (kafka::MockCluster* cluster : {&first, &second}) cluster->create_topic("receipts", 1);
  }
  kafka::MockCluster first, second;
};

class OtherCluster : protected TwoClusters, public RelayGround {
 protected:
  OtherCluster() : RelayGround(first.bootstrap(), {{"receipts", 1}}) {}

  std::unique_ptr<Running> run_at(const kafka::MockCluster& cluster, bool transactions = false) {
    RelaySetup to = setup();
    to.transactions = transactions;
    to.properties = [bootstrap = cluster.bootstrap()] {
      return kafka::Properties{{"bootstrap.servers", bootstrap}};
    };
    return std::make_unique<Running>(std::move(to), "w");
  }
  void send_to_first() {
    database.run(rows("receipts", 0, 10));
    const auto relay = run_at(first);
    await_sent();
  }
  void await_halt() {
    database.wait_until(
        "SELECT topic, reason, row_id FROM hapax.outbox_halts WHERE ended_at IS NULL",
        "receipts|other_cluster|null");
  }
  void retry(bool new_cluster) {
    store::Session session(database.make_operator());
    const auto decided =
        store::retry_outbox(session, {"g", "ann", "moved"}, "receipts", new_cluster);
    EXPECT_EQ(decided.halts.size(), 1U);
    EXPECT_EQ(decided.cluster.empty(), !new_cluster);
  }
  std::size_t in_second() {
    return support::read_records(second.bootstrap(), "receipts", 0).size();
  }
};

TEST_F(OtherCluster, GetsNothingUntilTheRelayReachesItsOwnAgain) {
  send_to_first();
  database.run(rows("receipts", 10, 10));
  {
    const auto relay = run_at(second);
    await_halt();
    retry(false);  // and the setting is as wrong as before
    await_halt();
  }
  EXPECT_EQ(in_second(), 0U);
  const auto relay = run_at(first);
  retry(false);
  await_sent();
  expect_exact("receipts", 20);
}

TEST_F(OtherCluster, GetsTheRecordsOnceAnOperatorDecidesSo) {
  send_to_first();
  database.run(rows("receipts", 10, 10));
  const auto relay = run_at(second);
  await_halt();
  retry(true);
  await_sent();
  EXPECT_EQ(in_second(), 10U);
  EXPECT_EQ(records("receipts").size(), 10U);
}

TEST_F(OtherCluster, GetsNoTransactionEither) {
  send_to_first();
  database.run(rows("receipts", 10, 10));
  const auto relay = run_at(second, true);
  await_halt();
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.outbox_batches"), "0");
  EXPECT_EQ(in_second(), 0U);
}

// An operator may still discard a dead letter that is not in the outbox.
TEST_F(OtherCluster, LeavesDeadLettersBehindAHaltedTopicToOperators) {
  send_to_first();
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) SELECT 'g', 'payments', 1, 0, n, 'none', 'p', '{}', '{}', "
      "'rejected', 'no', 1, 'h', '1', 's', now() FROM generate_series(1, 250) n");
  const auto run_letters_at = [&](const kafka::MockCluster& cluster) {
    RelaySetup to = setup();
    to.topics.clear();
    to.letters = {{"payments", "receipts"}};
    to.properties = [bootstrap = cluster.bootstrap()] {
      return kafka::Properties{{"bootstrap.servers", bootstrap}};
    };
    return std::make_unique<Running>(std::move(to), "w");
  };
  {
    const auto relay = run_letters_at(second);
    await_halt();
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded', ended_by = 'o', "
      "ended_why = 'w' WHERE published_at IS NULL");
  const auto relay = run_letters_at(first);
  retry(false);
  await_sent();
  EXPECT_EQ(records("receipts").size(), 10U + store::kMostLetters);
}

// It knows nothing of clusters then, which is not the same as a schema that keeps none.
TEST_F(OtherCluster, GetsNothingWhileTheRelayCannotReadItsOwn) {
  const std::string waits =
      "SELECT count(*) FROM pg_locks WHERE relation = 'hapax.outbox_clusters'::regclass AND NOT "
      "granted";
  send_to_first();
  database.run(rows("receipts", 10, 10));
  store::Session other(database.owner());
  std::optional<store::Transaction> locking(other);
  locking->run("LOCK TABLE hapax.outbox_clusters IN ACCESS EXCLUSIVE MODE");
  const auto relay = run_at(second);
  for (const char* const waiting : {"1", "0"}) database.wait_until(waits, waiting);
  locking.reset();
  await_halt();
  EXPECT_EQ(in_second(), 0U);
}

// A relay of this release before `hapax migrate up`.
TEST_F(OtherCluster, IsNotNoticedOnTheSchemaBefore) {
  database.run("DROP TABLE hapax.outbox_clusters");
  send_to_first();
  database.run(rows("receipts", 10, 10));
  const auto relay = run_at(second);
  await_sent();
  EXPECT_EQ(in_second(), 10U);
}

// `hapax migrate up` comes while the relay runs. From then on a wrong setting would be noticed.
TEST_F(OtherCluster, IsNoticedSoonAfterTheSchemaHasCome) {
  database.run("DROP TABLE hapax.outbox_clusters");
  const auto relay = run_at(first);
  database.run(rows("receipts", 0, 10));
  await_sent();
  std::ifstream migration(test::source_folder() / "migrations/0017_note_outbox_clusters.up.sql");
  database.run({std::istreambuf_iterator<char>(migration), {}});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  std::string noted;
  for (int n = 10; noted.empty() && std::chrono::steady_clock::now() < until; ++n) {
    database.run(rows("receipts", n, 1));
    await_sent();
    noted = database.value("SELECT cluster_id FROM hapax.outbox_clusters");
  }
  EXPECT_NE(noted, "");
}

}  // namespace
}  // namespace hapax::outbox
