// The offset at which a partition starts, with a real broker. An operator resets it, a topic is
// made again, the database is the wrong one, or the log does not have the offset. If facts
// contradict each other, only that partition halts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kafka/consumer.hpp"
#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr const char* kOpenHaltsWithReasons =
    "SELECT partition, reason FROM hapax.halts WHERE ended_at IS NULL ORDER BY 1";

// As `hapax resume` does it.
void end_halts(Site& site) {
  site.database().run(
      "UPDATE hapax.halts SET ended_at = now(), ended_by = 'test', why = 'mended', "
      "decision = 'retry' WHERE ended_at IS NULL");
}

// A site of two partitions whose first payments [0, 20) are booked and whose worker has left.
std::unique_ptr<Site> worked_site() {
  auto site = std::make_unique<Site>(2);
  Producer producer(site->bootstrap());
  site->pay(producer, 0, 20);
  const auto worker = site->worker("before");
  site->await_no_lag();
  expect_leaves(*worker);
  return site;
}

// The reset skips the four messages between, on one partition only.
TEST(Start, HonoursAnOffsetThatAnOperatorResetForward) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  Producer producer(site->bootstrap());
  site->pay(producer, 20, 10);  // five a partition: offsets 10 to 14
  reset_offset(site->bootstrap(), site->group(), site->topic(), 0, {14, ""});
  const auto worker = site->worker("w");
  site->await_no_lag();
  EXPECT_EQ(site->database().value("SELECT count(*) FROM payments"), "26");
  EXPECT_EQ(site->database().value("SELECT string_agg(id, ' ' ORDER BY nr) FROM payments "
                                   "WHERE substr(id, 2)::int >= 20 AND substr(id, 2)::int % 2 = 0"),
            "p28");
  expect_leaves(*worker);
}

TEST(Start, HonoursAnOffsetThatAnOperatorResetBackAndDoublesNothing) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  reset_offset(site->bootstrap(), site->group(), site->topic(), 0, {0, ""});
  const auto worker = site->worker("w");
  worker->await("partition_started", {{"partition", 0}, {"offset", 0}});
  site->await_no_lag();
  site->expect_exact(20);
  expect_leaves(*worker);
}

// Retention has forgotten a key of which the reset asks to run the message again.
TEST(Start, HaltsAtAnUnknownMessageBelowTheHighestCheckpoint) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  site->database().run("DELETE FROM hapax.idempotency_keys WHERE key = 'p4'");
  reset_offset(site->bootstrap(), site->group(), site->topic(), 0, {0, ""});
  const auto worker = site->worker("w");
  worker->await("halted", {{"partition", 0}, {"offset", 2}, {"reason", "unknown_below_highest"}});
  site->await(kOpenHaltsWithReasons, "0|unknown_below_highest");
  EXPECT_EQ(site->database().value("SELECT count(*) FROM payments"), "20");
  expect_leaves(*worker);
}

TEST(Start, HaltsAboveTheEndAloneAndGoesOnOnceTheHaltIsEnded) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  reset_offset(site->bootstrap(), site->group(), site->topic(), 0, {12, ""});  // the log ends at 10
  const auto worker = site->worker("w");
  worker->await("halted", {{"partition", 0}, {"reason", "offset_above_end"}});
  worker->await_not_ready("halted: offset_above_end");
  site->await(kOpenHaltsWithReasons, "0|offset_above_end");

  Producer producer(site->bootstrap());
  site->pay(producer, 20, 10);
  site->await("SELECT count(*) FROM payments WHERE substr(id, 2)::int >= 20", "5");
  EXPECT_EQ(site->database().value(kOpenHaltsWithReasons), "0|offset_above_end");

  end_halts(*site);  // by now the log goes beyond 12
  worker->await("resumed", {{"partition", 0}}, 1, std::chrono::seconds(5));
  site->await_no_lag();
  EXPECT_EQ(site->database().value("SELECT count(*) FROM payments"), "28");
  worker->await_ready();
  expect_leaves(*worker);
}

TEST(Start, AHaltIsKeptWhenTheWorkerLeavesAtOnce) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  reset_offset(site->bootstrap(), site->group(), site->topic(), 0, {12, ""});
  const auto worker = site->worker("w", {{"worker", {{"checkpoint_interval", "1m"}}}});
  worker->await("halted");
  expect_leaves(*worker);
  EXPECT_EQ(site->database().value(kOpenHaltsWithReasons), "0|offset_above_end");
}

// As after an unclean election that cut the log's tail.
TEST(Start, GoesOnAtTheEndIfAnOperatorDecidesThatTheTailWasLost) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  site->database().run(
      "UPDATE hapax.checkpoints SET next_offset = 14, highest = 14 WHERE partition = 0");
  const auto worker = site->worker("w");
  worker->await("halted", {{"partition", 0}, {"reason", "offset_above_end"}});
  site->await(kOpenHaltsWithReasons, "0|offset_above_end");
  const auto run = [&](std::vector<std::string> arguments) {
    for (const std::string& more :
         {std::string("--why"), std::string("tail lost"), std::string("--yes"),
          std::string("--url"), site->database().owner().url})
      arguments.push_back(more);
    return hapax(std::move(arguments), worker->config());
  };
  const std::string place = site->topic() + "/0";
  const Said refused = run({"resume", place, "--decision", "same_topic"});
  EXPECT_THAT(refused.text, testing::HasSubstr("Decide `recreated`")) << refused.code;
  expect_leaves(*worker);
  // What comes at the lost offsets is of another generation: not the dead letter that stood there.
  site->database().run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) SELECT group_id, topic, generation, 0, 12, 'none', '{}', "
      "'{}', 'rejected', 'e', 1, 'h', 'v', 'scripted', now() FROM hapax.checkpoints WHERE "
      "partition = 0");
  EXPECT_EQ(run({"resume", place, "--decision", "recreated"}).code, 0);
  EXPECT_EQ(run({"offsets", "skip", place, "--to", "latest"}).code, 0);
  worker->start_again();
  worker->await("partition_started", {{"partition", 0}, {"offset", 10}});
  Producer producer(site->bootstrap());
  site->pay(producer, 20, 10);
  site->await_booked(30);
  EXPECT_EQ(worker->count("halted"), 0U) << worker->output();
  expect_leaves(*worker);
}

TEST(Start, HaltsIfTheTopicWasMadeAgain) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  delete_topic(site->bootstrap(), site->topic());
  create_topic(site->bootstrap(), site->topic(), 2);
  const auto worker = site->worker("w");
  worker->await("halted", {}, 2);
  // A librdkafka that cannot tell topic ids sees that the group's offsets are gone.
  const std::string reason = kafka::can_tell_topic_ids() ? "topic_recreated" : "offset_unproven";
  site->await(kOpenHaltsWithReasons, "0|" + reason + "\n1|" + reason);
  worker->await_not_ready("halted: ");

  // Accepted: new messages are other messages, even at the same offsets.
  Producer producer(site->bootstrap());
  site->pay(producer, 20, 20);
  site->database().run(
      "UPDATE hapax.checkpoints SET generation = generation + 1, "
      "start_as = 'initial', next_offset = NULL, highest = NULL");
  end_halts(*site);
  site->await_no_lag();
  site->expect_exact(40);
  expect_leaves(*worker);
}

// As by a commit that was under way meanwhile: the group has its offset, and the log holds it.
TEST(Start, HaltsIfTheIdAloneTellsThatTheTopicWasMadeAgain) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  const auto before = committed(site->bootstrap(), site->group(), site->topic(), 0);
  ASSERT_TRUE(before);
  delete_topic(site->bootstrap(), site->topic());
  create_topic(site->bootstrap(), site->topic(), 2);
  Producer producer(site->bootstrap());
  site->pay(producer, 20, 20);
  reset_offset(site->bootstrap(), site->group(), site->topic(), 0, *before);
  const auto worker = site->worker("w");
  if (kafka::can_tell_topic_ids()) {
    worker->await("halted", {{"partition", 0}, {"reason", "topic_recreated"}});
    EXPECT_EQ(site->database().value("SELECT count(*) FROM payments"), "20");
  } else {  // as docs/failures.md tells
    worker->await("partition_started", {{"partition", 0}, {"offset", before->offset}});
  }
  expect_leaves(*worker);
}

TEST(Start, HaltsOnADatabaseThatHasNoCheckpointForTheGroupsOffsets) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  test::Database wrong;
  const auto lost = site->worker("lost", {{"postgres", {{"url", wrong.worker().url}}}});
  lost->await("halted", {{"reason", "checkpoint_missing"}}, 2);
  lost->await_not_ready("halted: checkpoint_missing");
  EXPECT_EQ(wrong.value("SELECT count(*) FROM hapax.idempotency_keys"), "0");
  expect_leaves(*lost);
  EXPECT_EQ(wrong.value(kOpenHaltsWithReasons), "0|checkpoint_missing\n1|checkpoint_missing");

  Producer producer(site->bootstrap());
  site->pay(producer, 20, 10);
  const auto worker = site->worker("w");
  site->await_no_lag();
  site->expect_exact(30);
  expect_leaves(*worker);
}

// A worker of one partition waits for a retry with a full queue. Meanwhile Kafka deletes the
// messages that it would read next. Then the worker goes on.
struct Overtaken {
  explicit Overtaken(const char* policy) {
    site.database().run("SELECT pg_advisory_lock(1)");
    Producer producer(site.bootstrap());
    producer.produce(site.payment(0, {{"do", "fail while locked"}}));
    site.pay(producer, 1, 29);
    worker = site.worker(
        "w",
        {{"kafka", {{"out_of_range", policy}}},
         {"worker", {{"queue", {{"messages", 5}}}, {"ordering", "partition"}}},
         {"route", {{"retry", {{"max_attempts", 1'000'000}, {"first", "1s"}, {"max", "1s"}}}}}});
    worker->await("partition_paused");
    delete_records(site.bootstrap(), site.topic(), 0, kLogStart);
    site.database().run("SELECT pg_advisory_unlock(1)");
    worker->await("out_of_range", {{"partition", 0}});
  }

  static constexpr int kLogStart = 20;
  Site site{1};
  std::unique_ptr<WorkerProcess> worker;
};

TEST(Start, HaltsIfKafkaDeletesWhatAWorkerWouldReadNext) {
  HAPAX_NEEDS_KAFKA();
  Overtaken overtaken("halt");
  overtaken.site.await(kOpenHaltsWithReasons, "0|offset_out_of_range");
  expect_leaves(*overtaken.worker);
}

TEST(Start, GoesOnAtTheEarliestIfKafkaDeletesWhatAWorkerWouldReadNext) {
  HAPAX_NEEDS_KAFKA();
  Overtaken overtaken("earliest");
  overtaken.worker->await("messages_lost", {{"partition", 0}});
  overtaken.worker->await("partition_started", {{"offset", Overtaken::kLogStart}});
  overtaken.site.await("SELECT count(*) FROM payments WHERE substr(id, 2)::int >= 20", "10");
  EXPECT_EQ(overtaken.site.database().value("SELECT count(*) - count(DISTINCT id) FROM payments"),
            "0");
  EXPECT_EQ(overtaken.worker->count("halted"), 0U);
  expect_leaves(*overtaken.worker);
}

// What PostgreSQL has left of partition 1's checkpoint; seven of its effects are lost, too.
class StartOfALoss : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(StartOfALoss, HaltsAndMakesAgainWhatWasTakenBack) {
  HAPAX_NEEDS_KAFKA();
  const auto site = worked_site();
  site->database().run(
      std::string(GetParam().second) +
      " WHERE partition = 1;"
      "DELETE FROM hapax.idempotency_keys WHERE partition = 1 AND kafka_offset >= 3;"
      "DELETE FROM payments WHERE id IN ('p7', 'p9', 'p11', 'p13', 'p15', 'p17', 'p19')");
  const auto worker = site->worker("w");
  site->await(kOpenHaltsWithReasons, "1|checkpoint_missing");
  const Said said = hapax({"resume", site->topic() + "/1", "--decision", "earliest", "--why",
                           "restored", "--yes", "--url", site->database().owner().url},
                          worker->config());
  EXPECT_EQ(said.code, 0) << said.text;
  worker->await("partition_started", {{"partition", 1}, {"offset", 0}});
  site->await("SELECT count(*) FROM payments", "20");
  site->await_no_lag();
  site->expect_exact(20);
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(
    Each, StartOfALoss,
    testing::Values(
        std::pair("RestoredToBeforeIt", "DELETE FROM hapax.checkpoints"),
        std::pair("FailedOverToWhereItWasOnlyTaken",
                  "UPDATE hapax.checkpoints SET next_offset = NULL, highest = NULL, epoch = 1")),
    [](const auto& test) { return std::string(test.param.first); });

}  // namespace
}  // namespace hapax::support
