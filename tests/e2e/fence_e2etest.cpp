// A worker that stands still for longer than its session, and then wakes up believing it owns what
// others own by now.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kPartitions = 5;
constexpr int kPayments = 6'000;

TEST(Fence, AWorkerThatWakesUpTooLateDoublesNothingAndMovesNoCheckpoint) {
  HAPAX_NEEDS_KAFKA();
  Site site(kPartitions);
  Producer producer(site.bootstrap());
  const auto sleeper = site.worker("sleeper");
  const auto heir = site.worker("heir");
  heir->await("partition_started");
  site.pay(producer, 0, kPayments);
  site.await_booked(kPayments / 10);
  sleeper->freeze();
  // PostgreSQL ends its open transactions after idle_in_transaction_timeout; Kafka its session.
  site.await("SELECT count(*) FROM hapax.checkpoints WHERE owner = 'heir'",
             std::to_string(kPartitions));
  site.await_no_lag();
  site.expect_exact(kPayments);
  const std::string offsets = "SELECT partition, next_offset FROM hapax.checkpoints ORDER BY 1";
  const std::string before = site.database().value(offsets);
  const auto assignments = sleeper->count("assigned");

  sleeper->thaw();
  sleeper->await("assigned", {}, assignments + 1);
  EXPECT_THAT(sleeper->get("/metrics").body,
              testing::ContainsRegex("hapax_checkpoints_total.result=.fenced.. [1-9]"))
      << "what it wrote when it woke up found no row";
  EXPECT_EQ(site.database().value(offsets), before);
  site.pay(producer, kPayments, 100);
  site.await_no_lag();
  site.expect_exact(kPayments + 100);
  expect_leaves(*sleeper);
  expect_leaves(*heir);
}

}  // namespace
}  // namespace hapax::support
