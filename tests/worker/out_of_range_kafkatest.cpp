// A broker reports that its log does not hold the offset that a worker wants.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

using Request = kafka::MockCluster::Request;
using Error = kafka::MockCluster::Error;

void deny_the_offset() { Site::mock_cluster().refuse(Request::fetch, Error::offset_out_of_range); }

TEST(OutOfRange, IsAskedAboutAgainBeforeThePartitionHalts) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w");
  site.await_booked(20);

  deny_the_offset();
  worker->await("out_of_range", {{"partition", 0}, {"offset", 20}});
  site.pay(producer, 20, 20);
  site.await_no_lag();
  site.expect_exact(40);
  EXPECT_EQ(worker->count("halted"), 0U);

  deny_the_offset();  // again within a minute: it means it
  worker->await("halted", {{"partition", 0}, {"reason", "offset_out_of_range"}});
  expect_leaves(*worker);
}

// The broker that answers "out of range" is one that does not lead: the next question fails, too.
TEST(OutOfRange, StartsAgainAlsoIfThatFailsAtFirst) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w");
  site.await_booked(20);
  Site::mock_cluster().refuse_all(Request::list_offsets, Error::not_leader);
  deny_the_offset();
  worker->await("start_delayed");
  Site::mock_cluster().accept(Request::list_offsets);
  site.pay(producer, 20, 20);
  site.await_booked(40);
  expect_leaves(*worker);
}

// As with a broker that stood still, lacks the newest messages, and believes that it leads. The log
// seems to end below the checkpoint, and a moment later it does not.
TEST(OutOfRange, ALogThatSeemsTooShortAtTheStartIsAskedAboutAgain) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  auto worker = site.worker("w");
  site.await_no_lag();
  expect_leaves(*worker);
  site.database().run("UPDATE hapax.checkpoints SET next_offset = 25, highest = 25");
  worker = site.worker("w");
  worker->await("start_doubted", {{"partition", 0}});
  site.pay(producer, 20, 10);
  worker->await("partition_started", {{"partition", 0}, {"offset", 25}});
  site.await_booked(25);
  EXPECT_EQ(worker->count("halted"), 0U);
  expect_leaves(*worker);
}

// Retention that is ahead of a worker is so again a moment later.
TEST(OutOfRange, IsAlwaysAskedAboutIfTheConfigurationWantsEarliest) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w", {{"kafka", {{"out_of_range", "earliest"}}}});
  for (int time = 1; time <= 2; ++time) {
    site.await_booked(20 * time);
    deny_the_offset();
    worker->await("out_of_range", {{"offset", 20 * time}});
    site.pay(producer, 20 * time, 20);
  }
  site.await_booked(60);
  EXPECT_EQ(worker->count("halted"), 0U);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
