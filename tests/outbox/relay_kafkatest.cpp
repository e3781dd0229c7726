// The relay between a real PostgreSQL and librdkafka's mock brokers. Rows are written as a
// handler's transaction leaves them.
#include <gtest/gtest.h>

#include <atomic>

#include "kafka/mock_cluster.hpp"
#include "outbox/relay_ground.hpp"
#include "store/transaction.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

struct RelayCluster {
  RelayCluster() {
    cluster.create_topic("receipts", 3);
    cluster.create_topic("audit", 1);
  }
  kafka::MockCluster cluster;
};

class RelayCase : protected RelayCluster, public RelayGround {
 protected:
  RelayCase() : RelayGround(cluster.bootstrap(), {{"receipts", 3}, {"audit", 1}}) {}
};

TEST_F(RelayCase, SendsEachRecordOnceInTheOrderOfItsKeyAndRemovesIt) {
  database.run(rows("receipts", 0, 12'000));
  const auto relay = run();
  await_sent();
  database.run(rows("receipts", 12'000, 500));
  relay->relay.nudge();
  await_sent();
  expect_exact("receipts", 12'500);
  EXPECT_NE(relay->metrics.text().find("hapax_outbox_sent_total{topic=\"receipts\"} 12500"),
            std::string::npos);
}

TEST_F(RelayCase, AddsTheOriginOfARecordAndItsKey) {
  database.run(rows("audit", 7, 1));
  const auto relay = run();
  await_sent();
  const auto all = records("audit");
  ASSERT_EQ(all.size(), 1U);
  using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;
  EXPECT_EQ(all[0].headers, (Headers{{"kind", "receipt"},
                                     {"idempotency-key", "key 7"},
                                     {"hapax-origin", "g/payments/1/3/7"}}));
}

// A cursor over ids loses it.
TEST_F(RelayCase, SendsARecordThatCommitsBehindItsSuccessors) {
  store::Session late(database.worker());
  store::Transaction open(late);
  open.run(rows("receipts", 0, 1));
  const auto relay = run();
  for (int round = 0; round < 5; ++round) {
    database.run(rows("receipts", 1 + round, 1));
    await_sent();
  }
  open.commit();
  await_sent();
  EXPECT_EQ(records("receipts").size(), 6U);
}

// The mark never passes a record. If it did, the record would wait for the sweep, not for ever.
// Nor if the counts of published records cannot be folded: a publication may refuse the DELETE.
TEST_F(RelayCase, FindsARecordBehindTheMark) {
  database.run("REVOKE EXECUTE ON FUNCTION hapax.fold_outbox_counts(text) FROM PUBLIC");
  RelaySetup sweeping = setup();
  sweeping.sweep = 1s;
  Running relay(std::move(sweeping), "w");
  for (int round = 0; round < 5; ++round) {
    database.run(rows("audit", round, 1));
    await_sent();
  }
  database.run("SELECT setval(pg_get_serial_sequence('hapax.outbox', 'id'), 1, false)");
  database.run(rows("audit", 5, 1));
  await_sent();
  EXPECT_EQ(records("audit").size(), 6U);
}

TEST_F(RelayCase, HoldsUpOnlyTheRecordsOfATopicWithoutALeader) {
  cluster.set_led("audit", 0, false);
  database.run(rows("audit", 0, 20) + rows("receipts", 0, 1000));
  const auto relay = run();
  await_sent("topic = 'receipts'");
  expect_exact("receipts", 1000);
  database.run(rows("receipts", 1000, 1000));
  await_sent("topic = 'receipts'");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 20);
  cluster.set_led("audit", 0, true);
  await_sent();
  expect_exact("audit", 20);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox_halts"), 0);
}

// Another relay sends them meanwhile. What librdkafka still held would come behind its records.
TEST_F(RelayCase, TakesBackWhatItsLeaseNoLongerCoversThoughPostgresIsAway) {
  std::atomic<bool> is_cut = false;
  RelaySetup setup_of_first = setup("first");
  setup_of_first.connect = [&is_cut, options = database.worker()] {
    if (is_cut) throw store::DatabaseError({store::Fault::Kind::connection, "", "cut"});
    return store::Session(options);
  };
  cluster.set_led("audit", 0, false);
  database.run(rows("audit", 0, 20) + rows("receipts", 0, 1));
  auto first = std::make_unique<Running>(std::move(setup_of_first), "first");
  await_sent("topic = 'receipts'");  // so those of the other topic are in hand
  is_cut = true;
  database.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hapax_worker'");
  const auto second = run("second");
  database.run(rows("receipts", 1, 1));
  await_sent("topic = 'receipts'");  // by the second one: the lease of the first is over
  cluster.set_led("audit", 0, true);
  await_sent();
  first.reset();
  expect_exact("audit", 20);
}

TEST_F(RelayCase, ResendsNothingThatABatchsRefusalWasNotAbout) {
  database.run(rows("audit", 0, 1000));
  // The first batch is refused, then nothing is: no record is to blame.
  cluster.refuse(kafka::MockCluster::Request::produce, kafka::MockCluster::Error::too_large);
  const auto relay = run();
  await_sent();
  expect_exact("audit", 1000);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox_halts"), 0);
}

TEST_F(RelayCase, HaltsTheKeyOfARecordThatIsRefusedAloneAndNoOther) {
  database.run(rows("audit", 0, 1));
  for (int i = 0; i < 2; ++i)
    cluster.refuse(kafka::MockCluster::Request::produce, kafka::MockCluster::Error::too_large);
  const auto relay = run();
  database.wait_until("SELECT reason FROM hapax.outbox_halts WHERE ended_at IS NULL",
                      "record_refused");
  database.run(rows("audit", 1, 30) + rows("receipts", 0, 100));
  await_sent("record_key <> 'k0'");
  EXPECT_EQ(database.value("SELECT string_agg(convert_from(payload, 'UTF8'), ' ' ORDER BY id) "
                           "FROM hapax.outbox"),
            "0 10 20 30");
  // One more of the key becomes visible with the decision, behind all that was read before.
  database.run("BEGIN; UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'retry'; " +
               rows("audit", 31, 10) + "COMMIT");
  await_sent();
  expect_exact("audit", 41);
}

// As under an old snapshot, when a count walks over a million records that were sent since.
TEST_F(RelayCase, ShowsAHaltThoughEachCountTakesTooLong) {
  database.run(
      "ALTER TABLE hapax.outbox ENABLE ROW LEVEL SECURITY; CREATE POLICY slow ON hapax.outbox "
      "USING (current_setting('statement_timeout') <> '1s' OR pg_sleep(3) IS NULL); INSERT INTO "
      "hapax.outbox_halts (group_id, topic, reason, detail, halted_by) VALUES ('g', 'audit', "
      "'topic_refused', '', 'w');" +
      rows("audit", 0, 1));
  const auto relay = run();
  const auto shows = [&] {
    return relay->metrics.text().find("\nhapax_outbox_stalled_keys 1") != std::string::npos;
  };
  for (int i = 0; i < 500 && !shows(); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(shows());
}

TEST_F(RelayCase, HaltsTheKeyOfARowThatWasEditedByHandAndNoOther) {
  database.run(rows("audit", 0, 30) + rows("receipts", 0, 100));
  const std::vector<std::string> broken = {"null", "{}", "[[\"a\"]]", "[[\"a\",{\"hex\":\"zz\"}]]",
                                           "[[\"a\",7]]"};
  for (std::size_t i = 0; i < broken.size(); ++i)
    database.run("UPDATE hapax.outbox SET headers = '" + broken[i] +
                 "' WHERE topic = 'audit' AND source_offset = " + std::to_string(i + 10));
  const auto relay = run();
  await_sent("topic = 'receipts'");
  expect_exact("receipts", 100);
  await_sent("source_offset < 10");
  await_sent("record_key >= 'k5'");
  EXPECT_EQ(database.value("SELECT string_agg(convert_from(payload, 'UTF8'), ' ' ORDER BY id) "
                           "FROM hapax.outbox"),
            "10 11 12 13 14 20 21 22 23 24");
  EXPECT_EQ(database.value("SELECT string_agg(DISTINCT reason, ' '), count(*), bool_and(detail "
                           "LIKE 'its headers are not [[name, value], …]: %') FROM "
                           "hapax.outbox_halts"),
            "record_unreadable|5|t");
  database.run("UPDATE hapax.outbox SET headers = '[]' WHERE topic = 'audit'");
  database.run("UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'retry'");
  await_sent();
  expect_exact("audit", 30);
}

TEST_F(RelayCase, HaltsATopicThatMayNotBeWrittenAndNoOther) {
  cluster.refuse(kafka::MockCluster::Request::produce, kafka::MockCluster::Error::not_allowed);
  database.run(rows("audit", 0, 10));
  const auto relay = run();
  database.wait_until("SELECT topic, reason, row_id FROM hapax.outbox_halts",
                      "audit|topic_refused|null");
  database.run(rows("receipts", 0, 100));
  await_sent("topic = 'receipts'");
  database.run("UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'retry'");
  await_sent();
  expect_exact("audit", 10);
}

TEST_F(RelayCase, HaltsATopicThatNoBrokerKnowsForTenSecondsAndNoOther) {
  database.run(rows("audit", 0, 10));
  const auto relay = run();
  await_sent();
  const auto first = std::chrono::steady_clock::now();
  cluster.set_topic_error("audit", kafka::MockCluster::Error::unknown_topic);
  // So the client asks for metadata. After not_leader it would not, from librdkafka 2.5 on: that
  // refusal names the leader.
  cluster.refuse_all(kafka::MockCluster::Request::produce,
                     kafka::MockCluster::Error::unknown_topic);
  database.run(rows("audit", 10, 10));
  database.wait_until("SELECT topic, reason, detail, row_id FROM hapax.outbox_halts",
                      "audit|topic_refused|Kafka has no such topic (any more)|null");
  EXPECT_GE(std::chrono::steady_clock::now() - first, 10s);
  cluster.accept(kafka::MockCluster::Request::produce);
  database.run(rows("receipts", 0, 100));
  await_sent("topic = 'receipts'");
  cluster.set_topic_error("audit", kafka::MockCluster::Error::none);
  database.run("UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'retry'");
  await_sent();
  expect_exact("audit", 20);
}

// No operator waits for a topic of dead letters, so it does not halt.
TEST_F(RelayCase, TriesATopicOfDeadLettersAgainThatMayNotBeWritten) {
  cluster.create_topic("dead", 1);
  cluster.refuse(kafka::MockCluster::Request::produce, kafka::MockCluster::Error::not_allowed);
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) SELECT 'g', 'payments', 1, 0, n, 'none', 'p', '{}', '{}', "
      "'rejected', 'no', 1, 'h', '1', 's', now() FROM generate_series(0, 2) n");
  RelaySetup with_letters = setup();
  with_letters.letters = {{"payments", "dead"}};
  Running relay(std::move(with_letters), "w");
  database.wait_until("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL", "0");
  await_sent();
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox_halts"), 0);
  EXPECT_EQ(support::read_records(cluster.bootstrap(), "dead", 0).size(), 3U);
}

// A gate's relay knows no letters. It once held the lease, and they waited for its end.
TEST_F(RelayCase, SendsDeadLettersThatOnlyAnotherProcessKnows) {
  database.run(rows("receipts", 0, 10));
  const auto gate = run("gate");
  await_sent();
  const auto letters = [&](int from) {
    database.run(
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
        "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
        "handler_version, scope, first_at) SELECT 'g', 'payments', 1, 0, n, 'none', 'p', '{}', "
        "'{}', 'rejected', 'no', 1, 'h', '1', 's', now() FROM generate_series(" +
        std::to_string(from) + ", " + std::to_string(from) + " + 2) n");
  };
  letters(0);
  cluster.create_topic("dead", 1);
  cluster.refuse(kafka::MockCluster::Request::produce, kafka::MockCluster::Error::not_allowed);
  RelaySetup with_letters = setup("worker");
  with_letters.letters = {{"payments", "dead"}};
  Running worker(std::move(with_letters), "worker");
  database.wait_until("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL", "0");
  await_sent();
  letters(3);
  database.wait_until("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL", "0");
  await_sent();
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox_halts"), 0) << "no operator waits";
  EXPECT_EQ(support::read_records(cluster.bootstrap(), "dead", 0).size(), 6U);
  EXPECT_EQ(database.value("SELECT epoch FROM hapax.leases"), "1") << "the gate's has the lease";
}

// An operator has edited its row.
TEST_F(RelayCase, SendsRecordsWhileADeadLetterCannotBeRead) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) VALUES ('g', 'payments', 1, 0, 0, 'none', 'p', '{NULL}', "
      "'{NULL}', 'rejected', 'no', 1, 'h', '1', 's', now())");
  database.run(rows("receipts", 0, 10));
  cluster.create_topic("dead", 1);
  RelaySetup with_letters = setup();
  with_letters.letters = {{"payments", "dead"}};
  std::atomic<int> connections = 0;
  with_letters.connect = [&connections, connect = with_letters.connect] {
    ++connections;
    return connect();
  };
  Running relay(std::move(with_letters), "w");
  await_sent();
  expect_exact("receipts", 10);
  EXPECT_EQ(connections, 1) << "it began again because of the letter";
  database.run("UPDATE hapax.dead_letters SET header_names = '{}', header_values = '{}'");
  database.wait_until("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL", "0");
}

// Each look for letters takes as long as it may. It once took as long as the lease lasts.
TEST_F(RelayCase, SendsRecordsWhileEachMoveOfDeadLettersIsSlow) {
  database.run(rows("receipts", 0, 100));
  cluster.create_topic("dead", 1);
  store::Session owner(database.owner());
  store::Transaction holding(owner);
  holding.run("LOCK TABLE hapax.dead_letters IN ACCESS EXCLUSIVE MODE");
  RelaySetup with_letters = setup();
  with_letters.letters = {{"payments", "dead"}};
  with_letters.transactions = true;
  with_letters.lease = 5s;
  auto patient = database.worker();
  patient.lock_timeout = 10s;
  with_letters.connect = [patient] { return store::Session(patient); };
  Running relay(std::move(with_letters), "w");
  await_sent();
  EXPECT_EQ(database.value("SELECT epoch FROM hapax.leases"), "1");
}

// SKIP LOCKED would let both send, and split a key between them.
TEST_F(RelayCase, OfTwoRelaysOneWorksAndTheOtherTakesOverAtOnce) {
  database.run(rows("receipts", 0, 3000));
  auto one = run("one");
  auto two = run("two");
  await_sent();
  expect_exact("receipts", 3000);
  const std::string leader = database.value("SELECT split_part(holder, ' ', 1) FROM hapax.leases");
  (leader == "one" ? one : two).reset();
  database.run(rows("receipts", 3000, 3000));
  await_sent();
  expect_exact("receipts", 6000);
  EXPECT_EQ(database.value("SELECT epoch FROM hapax.leases"), "2");
}

TEST_F(RelayCase, TakesOverLongBeforeALeaseEndsWhoseRelayHasNoSession) {
  database.run(
      "INSERT INTO hapax.leases (name, holder, until, epoch) VALUES "
      "('outbox of g', 'dead session-7200s1', now() + interval '1 hour', 1)");
  database.run(rows("audit", 0, 10));
  RelaySetup patient = setup();
  patient.lease = 2h;
  Running relay(std::move(patient), "w");
  await_sent();
  expect_exact("audit", 10);
}

TEST_F(RelayCase, ShowsOthersThatItLivesInEachOfItsSessions) {
  const std::string shown =
      "FROM pg_locks WHERE locktype = 'advisory' AND database = "
      "(SELECT oid FROM pg_database WHERE datname = current_database())";
  const auto relay = run();
  database.wait_until("SELECT count(*) " + shown, "1");
  const std::string before = database.value("SELECT pid " + shown);
  database.run("SELECT pg_terminate_backend(" + before + ")");
  database.wait_until("SELECT count(*) " + shown + " AND pid <> " + before, "1");
}

TEST_F(RelayCase, SendsNothingFromACopyOfTheDatabase) {
  database.run(rows("receipts", 0, 10));
  const auto copy = database.copy();
  RelaySetup on_copy = setup("copy");
  on_copy.connect = [options = copy->worker()] { return store::Session(options); };
  Running relay(std::move(on_copy), "copy");
  database.run(rows("receipts", 10, 10));
  const auto original = run();
  await_sent();
  EXPECT_EQ(copy->count("SELECT count(*) FROM hapax.outbox"), 10);
  EXPECT_EQ(copy->count("SELECT count(*) FROM hapax.leases"), 0);
  expect_exact("receipts", 20);
}

// Committed rows are sent, also if the configuration does not name their topic any more.
TEST_F(RelayCase, SendsRecordsOfATopicThatIsNotConfiguredAnyMore) {
  database.run(rows("audit", 0, 5));
  RelaySetup without = setup();
  without.topics.erase("audit");
  Running relay(std::move(without), "w");
  await_sent();
  expect_exact("audit", 5);
}

// Its sessions end, as in a restart of a pooler; what Kafka has is not sent again.
TEST_F(RelayCase, RepeatsNothingWhenItsSessionIsLost) {
  const auto relay = run();
  database.run(rows("receipts", 0, 1000));
  await_sent();  // it has the lease, and knows it
  for (int round = 1; round < 5; ++round) {
    database.run(rows("receipts", round * 1000, 1000));
    database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
        "'hapax_worker' AND pid <> pg_backend_pid() AND datname = current_database()");
  }
  await_sent();
  expect_exact("receipts", 5000);
  EXPECT_EQ(database.value("SELECT epoch FROM hapax.leases"), "1");
}

}  // namespace
}  // namespace hapax::outbox
