// The watchdog times handlers, and nothing else that a message waits for.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(Watchdog, DoesNotCountWaitingForAKeyThatAnotherTransactionHolds) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("BEGIN; LOCK TABLE hapax.idempotency_keys IN EXCLUSIVE MODE");
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  const auto worker = site.worker(
      "w", {{"postgres", {{"lock_timeout", "20s"}}}, {"worker", {{"handler_timeout", "1s"}}}});
  // Retention's statement, and the claim.
  site.await(
      "SELECT CASE WHEN count(*) >= 2 THEN 'both wait' END FROM pg_locks WHERE NOT granted "
      "AND relation = 'hapax.idempotency_keys'::regclass "
      "AND clock_timestamp() - waitstart > interval '3 s'",
      "both wait");
  site.database().run("COMMIT");
  site.await_booked(1);
  EXPECT_EQ(worker->count("handler_hangs"), 0U);
  expect_leaves(*worker);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
}

}  // namespace
}  // namespace hapax::support
