// A full queue holds up neither later messages nor other partitions for ever.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

nlohmann::json small_queue(const char* ordering) {
  return {{"worker", {{"queue", {{"messages", 10}}}, {"ordering", ordering}}},
          {"route", {{"retry", {{"first", "1h"}, {"max", "1h"}}}}}};
}

TEST(Queue, APartitionThatWaitsAndFillsItLeavesTheOthersTheirShare) {
  Site site = Site::on_mock_cluster(2);
  Producer producer(site.bootstrap());
  Outgoing poison = site.payment(1'000'000, {{"do", "fail"}});
  ASSERT_EQ(poison.partition, 0);
  producer.produce(poison);
  site.pay(producer, 0, 200);
  const auto worker = site.worker("w", small_queue("partition"));
  site.await_booked(100);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments WHERE amount_minor % 2 = 1"), "0")
      << "those of partition 0 wait behind the failed one";
  expect_leaves(*worker);
}

TEST(Queue, ManyTimesItsSizeGoesThrough) {
  Site site = Site::on_mock_cluster(2);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 2'000);
  const auto worker = site.worker("w", small_queue("key"));
  site.await_no_lag();
  site.expect_exact(2'000);
  expect_leaves(*worker);
}

// A partition may have one message more than its share, but not each of many.
TEST(Queue, HoldsTwiceItsBytesAndOneMessageHoweverManyPartitionsThereAre) {
  constexpr int kPartitions = 24, kLarge = 900'000;
  Site site = Site::on_mock_cluster(kPartitions);
  site.database().run("SELECT pg_advisory_lock(1)");
  const auto worker = site.worker("w", {{"worker", {{"queue", {{"bytes", 1 << 20}}}}},
                                        {"postgres", {{"lock_timeout", "20s"}}}});
  worker->await("partition_started", {}, kPartitions);
  Producer producer(site.bootstrap(), {{"compression.codec", "lz4"}});
  for (int partition = 0; partition < kPartitions; ++partition) {
    Outgoing message =
        site.payment(partition, {{"do", "hold"}, {"fill", std::string(kLarge, 'x')}});
    message.partition = partition;
    producer.produce(message);
  }
  producer.flush();
  // All that may come has: each partition is paused, or none is at all.
  for (int partition = 0; partition < kPartitions; ++partition)
    worker->await_metric("hapax_partition_state{partition=\"" + std::to_string(partition) +
                         "\",state=\"paused\",topic=\"" + site.topic() + "\"} 1");
  const std::string metrics = worker->get("/metrics").body;
  constexpr std::string_view kName = "\nhapax_queue_bytes ";
  const auto at = metrics.find(kName);
  ASSERT_NE(at, std::string::npos) << metrics;
  EXPECT_LE(std::stod(metrics.substr(at + kName.size())), 2.0 * (1 << 20) + kLarge + 10'000);
  site.database().run("SELECT pg_advisory_unlock(1)");
  site.await_booked(kPartitions);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
