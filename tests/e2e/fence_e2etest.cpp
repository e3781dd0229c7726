// A worker that stands still for longer than its session, and then wakes up believing it owns what
// others own by now.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kPartitions = 5;
constexpr int kFencePayments = 6'000;
constexpr int kMostRounds = 15;

class Fence : public testing::TestWithParam<bool> {};  // whether the key is the position

TEST_P(Fence, AWorkerThatWakesUpTooLateDoublesNothingAndMovesNoCheckpoint) {
  HAPAX_NEEDS_KAFKA();
  const bool by_position = GetParam();
  nlohmann::json patch;
  if (by_position) patch["route"] = {{"key", "position"}, {"batch", 10}};
  Site site(kPartitions);
  Producer producer(site.bootstrap());
  const auto sleeper = site.worker("sleeper", patch);
  const auto heir = site.worker("heir", patch);
  heir->await("partition_started");
  const std::string offsets = "SELECT partition, next_offset FROM hapax.checkpoints ORDER BY 1";
  const auto has_been_fenced = [&] {
    return testing::Value(sleeper->get("/metrics").body,
                          testing::ContainsRegex("hapax_checkpoints_total.result=.fenced.. [1-9]"));
  };
  int paid = 0;
  // It wakes up with checkpoints to write; sometimes Kafka tells it first that they are not its
  // own.
  while (!has_been_fenced() && paid < kMostRounds * kFencePayments) {
    site.pay(producer, paid, kFencePayments);
    site.await_booked(paid + kFencePayments / 10);
    site.await("SELECT count(*) > 0 FROM hapax.checkpoints WHERE owner = 'sleeper'", "t");
    sleeper->freeze();
    // PostgreSQL ends its open transactions after idle_in_transaction_timeout; Kafka its session.
    site.await("SELECT count(*) FROM hapax.checkpoints WHERE owner = 'heir'",
               std::to_string(kPartitions));
    site.await_no_lag();
    site.expect_exact(paid += kFencePayments, 0, by_position);
    const std::string before = site.database().value(offsets);
    const auto assignments = sleeper->count("assigned");
    sleeper->thaw();
    sleeper->await("assigned", {}, assignments + 1);
    EXPECT_EQ(site.database().value(offsets), before);
  }
  EXPECT_TRUE(has_been_fenced()) << "what it wrote when it woke up found no row";
  site.pay(producer, paid, 100);
  site.await_no_lag();
  site.expect_exact(paid + 100, 0, by_position);
  expect_leaves(*sleeper);
  expect_leaves(*heir);
}

INSTANTIATE_TEST_SUITE_P(KeyAndPosition, Fence, testing::Bool());

}  // namespace
}  // namespace hapax::support
