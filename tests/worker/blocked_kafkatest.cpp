// If a message waits for a retry, later messages of its partition run up to a bound. At the bound
// the log names the message once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kQueue = 20;
constexpr int kReach = 10 * kQueue;
constexpr int kBlockedPayments = kReach + 40;

TEST(Blocked, AFullPartitionNamesTheRetryItWaitsForAndGoesOnAfterIt) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  Outgoing stuck = site.payment(0, {{"do", "fail while locked"}});
  stuck.key = "a0\x1b[2J" + std::string(1000, 'x');
  producer.produce(stuck);
  // One lane, busy for 2 s: a queue that is full because of it is not what this is about.
  for (int n = 1; n < kQueue; ++n)
    producer.produce(site.payment(n, {{"do", "sleep"}, {"seconds", 0.1}}));
  site.pay(producer, kQueue, kBlockedPayments - kQueue);
  const auto worker = site.worker(
      "w", {{"route", {{"retry", {{"max_attempts", 1'000'000}, {"first", "2s"}, {"max", "2s"}}}}},
            {"worker", {{"lanes", 1}, {"queue", {{"messages", kQueue}}}}}});

  const auto said = worker->await("partition_paused", {{"partition", 0}, {"offset", 0}});
  EXPECT_GE(site.database().count("SELECT count(*) FROM payments"), kReach - 2)
      << "the lane was still at work";
  EXPECT_GT(said.at("attempts"), 0);
  EXPECT_THAT(said.at("record_key").get<std::string>(), testing::StartsWith("a0\x1b[2Jxxx"));
  EXPECT_LT(said.at("record_key").get<std::string>().size(), 200U);
  site.await("SELECT count(*) FROM payments", std::to_string(kReach - 1));
  const std::string gauge =
      "hapax_partition_blocked_offset{partition=\"0\",topic=\"" + site.topic() + "\"} 0";
  EXPECT_THAT(worker->get("/metrics").body, testing::HasSubstr(gauge));
  EXPECT_THAT(worker->get("/readyz").body, testing::HasSubstr("offset 0 waits for a retry"));
  const std::string oldest =
      "hapax_partition_oldest_unsettled_seconds{partition=\"0\",topic=\"" + site.topic() + "\"} ";
  EXPECT_THAT(worker->get("/metrics").body, testing::HasSubstr(oldest));
  EXPECT_THAT(worker->get("/metrics").body, testing::Not(testing::HasSubstr(oldest + "0\n")));

  site.database().run("SELECT pg_advisory_unlock(1)");
  worker->await("partition_goes_on", {{"partition", 0}});
  site.await_no_lag();
  site.expect_exact(kBlockedPayments);
  worker->await_metric(oldest + "0");
  EXPECT_EQ(worker->count("partition_paused"), 1U);
  EXPECT_THAT(worker->get("/metrics").body,
              testing::Not(testing::HasSubstr("hapax_partition_blocked_offset{")));
  expect_leaves(*worker);
}

TEST(CheckpointAge, RisesWhileNoCheckpointIsWrittenAndIsZeroOnceAllIsBelowIt) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 3);
  const std::string series =
      "hapax_partition_checkpoint_age_seconds{partition=\"0\",topic=\"" + site.topic() + "\"} ";
  {
    const auto rare = site.worker("rare", {{"worker", {{"checkpoint_interval", "1m"}}}});
    site.await_booked(3);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (double age = 0; age < 2;) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      const std::string shown = rare->get("/metrics").body;
      if (const auto at = shown.find(series); at != std::string::npos)
        age = std::stod(shown.substr(at + series.size()));
    }
    expect_leaves(*rare);
  }
  const auto often = site.worker("often");
  site.pay(producer, 3, 3);
  site.await_booked(6);
  often->await_metric(series + "0");
  expect_leaves(*often);
}

}  // namespace
}  // namespace hapax::support
