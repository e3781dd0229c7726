// Alerts in a real Prometheus, with a second for each minute. A fault raises each, and what its
// runbook tells to do ends it.
#include "deploy/monitored.hpp"

#include <gmock/gmock.h>

namespace hapax::support {
namespace {

struct Faults : testing::Test {
  void SetUp() override {
    if (!sandbox::find_in_path("prometheus")) GTEST_SKIP() << "no prometheus is installed";
    site = std::make_unique<Observed>();
    prometheus = std::make_unique<Prometheus>(
        std::map<std::string, std::string>{{"worker", local(site->admin)},
                                           {"gate", local(site->gate_admin)}},
        hurried_alert_rules());
    site->worker->await("partition_started", {}, 4);
    await_of_prometheus("a quiet start", [&] { return !prometheus->is_raised("HapaxWorkerDown"); });
  }

  void expect_fired(const std::string& alert) {
    await_of_prometheus(alert, [&] { return prometheus->is_firing(alert); });
  }
  void expect_ended(const std::string& alert) {
    await_of_prometheus("the end of " + alert, [&] { return !prometheus->is_raised(alert); });
  }

  // As the runbook writes it, by an operator.
  std::string type(std::vector<std::string> words, bool acts = true) {
    if (acts)
      words.insert(words.end(),
                   {"--why", "a test", "--yes", "--url", site->site.database().owner().url});
    const Said said = hapax(words, site->worker->config());
    EXPECT_EQ(said.code, 0) << words.front() << ": " << said.text;
    return said.text;
  }

  test::Database& database() { return site->site.database(); }

  std::unique_ptr<Observed> site;
  std::unique_ptr<Prometheus> prometheus;
};

// It waits an hour for its next try, so its checkpoint stays and holds the keys of its scope.
TEST_F(Faults, AMessageThatWaitsIsSkippedTo) {
  site->send_to(site->site.topic(), 0, {{"do", "wait"}});
  for (const char* const alert :
       {"HapaxOldestUnsettled", "HapaxNotProgressing", "HapaxRetentionBehind"})
    expect_fired(alert);
  type({"offsets", "skip", site->site.topic() + "/0", "--to", "1"});
  for (const char* const alert :
       {"HapaxOldestUnsettled", "HapaxNotProgressing", "HapaxRetentionBehind"})
    expect_ended(alert);
}

// The route of the letter is halted, so no worker takes its replay.
TEST_F(Faults, AReplayThatNoWorkerTakesIsCancelled) {
  site->send_to(site->site.topic(), 1, {{"do", "reject"}});
  expect_fired("HapaxDeadLettersRising");
  site->send_to(site->site.topic(), 2, {{"do", "commit"}});
  expect_fired("HapaxHalted");
  type({"dead", "replay", "--all", "--no-wait"});
  expect_fired("HapaxReplayStuck");
  type({"dead", "replay", "--all", "--cancel"});
  expect_ended("HapaxReplayStuck");
  expect_ended("HapaxDeadLettersRising");  // no new ones came
}

TEST_F(Faults, ARoleThatMayNotLogInIsNamedByCheck) {
  database().run(
      "ALTER ROLE hapax_worker NOLOGIN;"
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hapax_worker'");
  const json payment = {{"id", "p"}, {"account", "a"}, {"amount_minor", 1}};
  await_of_prometheus("HapaxGateFailing", [&] {
    EXPECT_EQ(site->pay_at_the_gate("p", payment), 503);
    return prometheus->is_firing("HapaxGateFailing");
  });
  expect_fired("HapaxPostgresDown");
  for (const Said& check : {hapax({"check"}, site->worker->config()), site->check_of_the_gate()}) {
    EXPECT_NE(check.code, 0);
    EXPECT_THAT(check.text, testing::HasSubstr("log in"));
  }
  database().run("ALTER ROLE hapax_worker LOGIN");
  site->worker->await("postgres_up");
  expect_ended("HapaxPostgresDown");
  EXPECT_EQ(site->pay_at_the_gate("p", payment), 200);
  expect_ended("HapaxGateFailing");
}

// As if another worker took the partitions again and again, each time before a checkpoint.
TEST_F(Faults, PartitionsThatMoveAgainAndAgainEndWithTheirCause) {
  int starts = 4;
  await_of_prometheus("HapaxCheckpointFenced", [&] {
    database().run("UPDATE hapax.checkpoints SET epoch = epoch + 1");
    site->send_to(site->site.topic(), starts, {});
    site->worker->await("partition_started", {}, starts += 4);
    return prometheus->is_firing("HapaxCheckpointFenced");
  });
  EXPECT_THAT(type({"status"}, false), testing::HasSubstr("running"));
  expect_ended("HapaxCheckpointFenced");
}

TEST_F(Faults, RecordsForATopicThatRefusesThemAreSentOnceItTakesThem) {
  kafka::MockCluster& kafka = Site::mock_cluster();
  kafka.set_topic_error(site->receipts, kafka::MockCluster::Error::unknown_topic);
  site->send_to(site->published, 3,
                {{"publish", {{{"topic", site->receipts}, {"value", "paid"}}}}});
  expect_fired("HapaxOutboxStuck");
  EXPECT_THAT(type({"outbox", "list"}, false), testing::HasSubstr(site->receipts));
  kafka.set_topic_error(site->receipts, kafka::MockCluster::Error::none);
  expect_ended("HapaxOutboxStuck");
}

TEST_F(Faults, AKilledWorkerIsStartedAgainAndAFailingGateIsAskedWell) {
  site->worker->kill();
  expect_fired("HapaxWorkerDown");
  EXPECT_EQ(site->pay_at_the_gate("bad", {{"amount_minor", 1}}), 500);
  expect_fired("HapaxGateFailing");
  site->worker->start_again();
  expect_ended("HapaxWorkerDown");
  EXPECT_EQ(site->pay_at_the_gate("good", {{"id", "p"}, {"account", "a"}, {"amount_minor", 1}}),
            200);
  expect_ended("HapaxGateFailing");
}

}  // namespace
}  // namespace hapax::support
