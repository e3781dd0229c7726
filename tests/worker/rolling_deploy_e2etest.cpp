// A deploy as an orchestrator rolls it: workers of the old and of the new configuration share the
// group, one leaves as the other comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/operator/migrate.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

constexpr int kDeployPayments = 400;

// What may change at any time.
const nlohmann::json kNew = {
    {"worker", {{"lanes", 2}, {"ordering", "none"}, {"checkpoint_interval", "100ms"}}},
    {"route", {{"batch", 20}, {"retry", {{"max_attempts", 7}}}, {"retention", "2d"}}}};

TEST(RollingDeploy, HandsPartitionsOverAndBooksEachOnce) {
  HAPAX_NEEDS_KAFKA();
  Site site(4);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, kDeployPayments);
  auto old_one = site.worker("old-1");
  auto old_two = site.worker("old-2");
  site.await_booked(kDeployPayments / 2);
  const auto new_one = site.worker("new-1", kNew);
  new_one->await("partition_started");
  expect_leaves(*old_one);
  site.pay(producer, kDeployPayments, kDeployPayments);
  const auto new_two = site.worker("new-2", kNew);
  new_two->await("partition_started");
  expect_leaves(*old_two);
  site.pay(producer, 2 * kDeployPayments, kDeployPayments);
  site.await_booked(3 * kDeployPayments);
  site.await_no_lag();
  site.expect_exact(3 * kDeployPayments);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.checkpoints "
                                  "WHERE owner IN ('new-1', 'new-2')"),
            "4");
  for (WorkerProcess* worker : {old_one.get(), old_two.get(), new_one.get(), new_two.get()}) {
    EXPECT_EQ(worker->count("cautious") + worker->count("halted"), 0U) << worker->output();
    EXPECT_EQ(worker->count("revoke_timeout"), 0U) << worker->output();
  }
  expect_leaves(*new_one);
  expect_leaves(*new_two);
}

// As `systemctl restart` and an upgrade of the package do it, with one worker under load.
TEST(RollingDeploy, TheOnlyWorkerIsReplacedUnderLoad) {
  HAPAX_NEEDS_KAFKA();
  Site site(4);
  site.database().run("ALTER TABLE payments ADD at timestamptz DEFAULT clock_timestamp()");
  int sent = 0;
  std::jthread client([&](const std::stop_token& stop) {
    Producer producer(site.bootstrap());
    for (; !stop.stop_requested(); ++sent) producer.send(site.payment(sent));
  });
  const auto worker = site.worker("w");
  site.await_booked(200);
  expect_leaves(*worker);
  const std::int64_t left_at = std::stoll(site.database().value("SELECT count(*) FROM payments"));
  worker->start_again();
  site.await_booked(left_at + 200);
  client.request_stop();
  client.join();
  site.await_no_lag();
  site.expect_exact(sent);
  RecordProperty("longest_pause_seconds",
                 site.database().value("SELECT max(pause) FROM (SELECT extract(epoch FROM at - "
                                       "lag(at) OVER (ORDER BY at)) AS pause FROM payments) p"));
  expect_leaves(*worker);
}

TEST(RollingDeploy, HaltsUnderAnotherKeyUntilTheOldConfigurationHasDrained) {
  HAPAX_NEEDS_KAFKA();
  const nlohmann::json impatient = {
      {"postgres", {{"lock_timeout", "20s"}}},
      {"worker", {{"revoke_timeout", "100ms"}, {"shutdown_timeout", "1s"}}}};
  nlohmann::json other_key = impatient;
  other_key["route"] = {{"key", {{"header", nullptr}, {"json", "/id"}}}};
  Site site(1);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hold"}}));  // stays unfinished
  producer.send(site.payment(1));                    // is finished, out of order
  const auto before = site.worker("old", impatient);
  site.await_booked(1);
  const auto after = site.worker("new", other_key);
  EXPECT_EQ(before->stop().code, 1) << "a handler has not come back";
  after->await("halted", {{"reason", "key_spec_changed"}});
  site.await("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL", "1");
  const Said status = hapax({"status"}, after->config());
  EXPECT_THAT(status.text, HasSubstr("run the old configuration until the partition is drained"));
  expect_leaves(*after);

  // As the status advises.
  site.database().run("SELECT pg_advisory_unlock(1)");
  before->start_again();
  before->await("halted");
  const Said said = hapax({"resume", site.topic() + "/0", "--decision", "retry", "--why",
                           "draining", "--yes", "--url", site.database().owner().url},
                          before->config());
  EXPECT_EQ(said.code, 0) << said.text;
  site.await_no_lag();
  expect_leaves(*before);
  after->start_again();
  after->await("key_changed", {{"partition", 0}});
  after->await("partition_started");
  producer.send(site.payment(2));
  site.await_no_lag();
  site.expect_exact(3);
  EXPECT_EQ(after->count("halted"), 0U) << after->output();
  expect_leaves(*after);
}

// What it settled above the checkpoint would run again under another key.
TEST(RollingDeploy, HaltsUnderAnotherKeyThoughAnOperatorHasMovedThePartition) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 3);
  const auto before = site.worker("old", {{"postgres", {{"lock_timeout", "20s"}}}});
  site.await_no_lag();
  site.database().run("SELECT pg_advisory_lock(1)");
  producer.send(site.payment(3, {{"do", "hold"}}));
  producer.send(site.payment(4));
  site.await_booked(4);
  before->kill();
  const Said said = hapax({"offsets", "rewind", site.topic() + "/0", "--to", "1", "--why", "a test",
                           "--url", site.database().owner().url},
                          before->config());
  ASSERT_EQ(said.code, 0) << said.text;
  const auto after =
      site.worker("new", {{"route", {{"key", {{"header", nullptr}, {"json", "/id"}}}}}});
  after->await("halted", {{"reason", "key_spec_changed"}});
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "4");
  expect_leaves(*after);
}

TEST(RollingDeploy, GoesOnWhileTheSchemaIsMigratedUnderIt) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  store::Session owner(site.database().owner());
  store::migrate_down(owner, store::kSchema - 1);
  Producer producer(site.bootstrap());
  const auto send = [&](int first) {
    site.pay(producer, first, 20);
    for (int n = 0; n < 4; ++n) {
      producer.produce(site.payment(10'000 + first + n, {{"do", "reject"}}));
      producer.produce(site.payment(20'000 + first + n, {{"do", "divide by 0"}}));
    }
    producer.flush();
  };
  send(0);
  const auto before = site.worker("before");
  site.await("SELECT count(*) FROM hapax.dead_letters", "8");
  site.await_no_lag();
  store::migrate_up(owner);
  send(20);
  site.await("SELECT count(*) FROM hapax.dead_letters", "16");
  const auto beside = site.worker("beside");
  beside->await("partition_started");
  send(40);
  site.await_no_lag();
  site.expect_exact(60, 24);
  expect_leaves(*before);
  site.pay(producer, 60, 20);
  site.await_no_lag();
  site.expect_exact(80, 24);
  for (WorkerProcess* worker : {before.get(), beside.get()})
    EXPECT_EQ(worker->count("halted") + worker->count("postgres_down"), 0U) << worker->output();
  expect_leaves(*beside);
}

}  // namespace
}  // namespace hapax::support
