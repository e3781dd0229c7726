// Routes with `key: "position"` through whole workers: what one leaves behind, and what the next
// sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/cutting_proxy.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

const nlohmann::json kByPosition = {{"route", {{"key", "position"}}}};

// No statement has asked yet whether it was committed. Under other keys it would run again.
TEST(Positions, ALeaveWithAMessageInDoubtIsNotDrainedSoAChangedKeyIsRefused) {
  Site site = Site::on_mock_cluster(1);
  test::CuttingProxy proxy(test::postgres().port());
  nlohmann::json patch = kByPosition;
  patch["postgres"] = {{"url", test::through_port(site.database().worker(), proxy.port()).url},
                       {"lock_timeout", "200ms"}};
  const auto worker = site.worker("w", patch);
  worker->await("partition_started");
  const std::string lock =
      "hapax.partition_lock('" + site.group() + "', '" + site.topic() + "', 0)";
  site.database().run("SELECT pg_advisory_lock_shared(" + lock + ")");  // it cannot ask meanwhile
  proxy.cut_next(";COMMIT", test::CuttingProxy::Cut::after_answer);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  site.await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1");
  expect_leaves(*worker);
  EXPECT_EQ(site.database().value("SELECT coalesce(owner, 'nobody'), next_offset FROM "
                                  "hapax.checkpoints"),
            "nobody|0");

  site.database().run("SELECT pg_advisory_unlock_shared(" + lock + ")");
  const auto changed = site.worker("changed");
  changed->await("halted", {{"reason", "key_spec_changed"}});
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "1");
  expect_leaves(*changed);
}

// It removes positions. A start at the checkpoint before would not know these any more.
TEST(Positions, AStartSeesACheckpointThatTheOwnerBeforeWroteWhileItWasDecided) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  const auto worker = site.worker("w", kByPosition);
  site.await_no_lag();
  expect_leaves(*worker);
  // As it was before the worker's last checkpoint, which is on its way.
  site.database().run(
      "UPDATE hapax.checkpoints SET next_offset = 5, highest = 5, owner = 'w';"
      "INSERT INTO hapax.positions SELECT group_id, topic, partition, generation, 9, '{1,2,3,4}' "
      "FROM hapax.checkpoints");
  site.database().run(
      "BEGIN; UPDATE hapax.checkpoints SET next_offset = 10, highest = 10;"
      "DELETE FROM hapax.positions");
  const auto heir = site.worker("heir", kByPosition);
  site.await("SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted", "1");
  site.database().run("COMMIT");
  heir->await("partition_started");
  site.pay(producer, 10, 5);
  site.await_no_lag();
  site.expect_exact(15, 0, true);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.halts"), "0");
  expect_leaves(*heir);
}

TEST(Positions, ARewindHaltsThePartitionAndASkipTakesItBack) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  const auto worker = site.worker("w", kByPosition);
  site.await_no_lag();
  const std::string place = site.topic() + "/0";
  const auto order = [&](std::vector<std::string> words) {
    return support::order(std::move(words), worker->config(), site.database().owner().url);
  };
  EXPECT_THAT(order({"offsets", "rewind", place, "--to", "4"}),
              testing::HasSubstr("unknown_below_highest"));
  worker->await("halted", {{"reason", "unknown_below_highest"}});  // any lane may be the first
  site.await("SELECT count(*) FROM hapax.halts", "1");  // the log line comes before the row
  EXPECT_THAT(order({"offsets", "skip", place, "--to", "10"}),
              testing::AllOf(testing::HasSubstr("hapax resume " + place + " --decision"),
                             testing::Not(testing::HasSubstr("workers notice"))));
  order({"resume", place, "--decision", "retry"});
  site.pay(producer, 10, 5);
  site.await_no_lag();
  site.expect_exact(15, 0, true);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
