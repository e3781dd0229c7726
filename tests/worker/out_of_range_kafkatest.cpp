// A broker that says its log does not hold what a worker wants of it.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(OutOfRange, IsAskedAboutAgainBeforeThePartitionHalts) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w");
  site.await_booked(20);

  Site::mock_cluster().refuse_a_fetch();
  worker->await("out_of_range", {{"partition", 0}, {"offset", 20}});
  site.pay(producer, 20, 20);
  site.await_no_lag();
  site.expect_exact(40);
  EXPECT_EQ(worker->count("halted"), 0U);

  Site::mock_cluster().refuse_a_fetch();  // again within a minute: it means it
  worker->await("halted", {{"partition", 0}, {"reason", "offset_out_of_range"}});
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
