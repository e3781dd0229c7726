// A worker that is stopped while it waits for PostgreSQL: what its log tells.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(AwaitedPostgres, LeavesALineAboutTheEndAndNoneAboutRoutes) {
  Site site = Site::on_mock_cluster(1);
  const auto worker =
      site.worker("w", {{"postgres", {{"url", "postgresql://127.0.0.1:1/nowhere"}}}});
  worker->await("waiting_for_postgres");
  expect_leaves(*worker);
  EXPECT_EQ(worker->count("stopped"), 1U) << worker->output();
  EXPECT_EQ(worker->count("route"), 0U) << worker->output();
}

}  // namespace
}  // namespace hapax::support
