// An earlier release called to the outside, and this one's handler does not call: the partition
// halts, and all commands tell why.
#include <gmock/gmock.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

TEST(OpenCall, HaltsItsPartitionUntilAnOperatorDecides) {
  Site site = Site::on_mock_cluster(1);
  const auto worker = site.worker("w");
  worker->await("partition_started");
  const auto said = [&](std::vector<std::string> arguments) {
    return hapax(std::move(arguments), worker->config());
  };
  const auto decided = [&](const std::string& how) {
    return said({"outside", "decide", "p0", how, "--why", "looked at it", "--yes", "--url",
                 site.database().owner().url});
  };
  EXPECT_THAT(said({"check"}).text, HasSubstr("none in scopes that do not call"));
  EXPECT_THAT(said({"outside", "list"}).text, HasSubstr("no call waits for a decision"));
  site.database().run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes) "
      "SELECT 'p0', scope, 'started', group_id, topic, generation, partition, 0, 'infinity', 100, "
      "1, now(), false, 0 FROM hapax.checkpoints");
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 2);
  worker->await("halted", {{"reason", "open_call"}});
  EXPECT_THAT(said({"status"}).text,
              HasSubstr("1 started, 0 answered (of these 1 without a worker)"));
  EXPECT_THAT(said({"outside", "list"}).text, HasSubstr("p0"));
  EXPECT_THAT(said({"check"}).text, HasSubstr("key p0 is `started`"));
  const Said refused = decided("--happened={}");
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.text, HasSubstr("no worker would book the answer"));
  const Said gave_up = decided("--give-up");
  EXPECT_EQ(gave_up.code, 0) << gave_up.text;
  const Said resumed = said({"resume", site.topic() + "/0", "--decision", "retry", "--why",
                             "given up", "--yes", "--url", site.database().owner().url});
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  site.await_booked(1);
  site.await_no_lag();
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
