// The watchdog times handlers, and nothing else that a message waits for.
#include <gtest/gtest.h>

#include "support/site.hpp"
#include "support/stands_still.hpp"

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

TEST(Watchdog, DoesNotCountTheTimeInWhichPostgresqlStandsStill) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hold"}}));
  const auto worker =
      site.worker("w", {{"postgres", {{"lock_timeout", "9m"}, {"statement_timeout", "10m"}}},
                        {"worker", {{"handler_timeout", "5s"}}}});
  site.await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1");
  {
    const test::StandsStill frozen(site.database());
    worker->await("postgres_down");  // three times the handler's time later
  }
  site.database().run("SELECT pg_advisory_unlock(1)");
  site.await_booked(1);
  EXPECT_EQ(worker->count("handler_hangs"), 0U);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
