// A full queue holds nobody back for ever: neither what is behind it nor other partitions.
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

}  // namespace
}  // namespace hapax::support
