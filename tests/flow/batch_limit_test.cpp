// Batches that run into each other take turns, then become small, and stay so while they would
// again.
#include "flow/batch_limit.hpp"

#include <gtest/gtest.h>

namespace hapax::flow {
namespace {

TEST(BatchLimit, TakesTurnsFirstAndHalvesWhatRanIntoOthersEvenSo) {
  BatchLimit limit;
  EXPECT_FALSE(limit.one_at_a_time());
  limit.contended(100);
  EXPECT_TRUE(limit.one_at_a_time());
  EXPECT_EQ(limit.value(), BatchLimit::kMost);
  limit.contended(100);
  EXPECT_EQ(limit.value(), 50U);
  limit.contended(3);
  EXPECT_EQ(limit.value(), 1U);
}

TEST(BatchLimit, GrowsBackFromOneAndThenStopsTakingTurns) {
  BatchLimit limit;
  limit.contended(2);
  limit.contended(2);
  const std::size_t patience = 4 * BatchLimit::kLeastPatience;
  limit.passed(patience - 1);
  EXPECT_EQ(limit.value(), 1U);
  limit.passed(1);
  EXPECT_EQ(limit.value(), 2U);
  while (limit.value() < BatchLimit::kMost) limit.passed(patience);
  EXPECT_TRUE(limit.one_at_a_time());
  limit.passed(patience);
  EXPECT_FALSE(limit.one_at_a_time());
}

// Batches of two or more meet a deadlock each time, for ever, turns or not.
TEST(BatchLimit, TriesMoreTheLessOftenTheMoreOftenItFailed) {
  BatchLimit limit;
  int contended = 0;
  for (int settled = 0; settled < 20'000'000;) {
    if (limit.value() > 1) {
      limit.contended(std::min<std::size_t>(limit.value(), 100));
      ++contended;
    } else {
      limit.passed(1);
      ++settled;
    }
  }
  EXPECT_LT(contended, 20'000'000 / 200'000 + 20);
  EXPECT_GT(contended, 50) << "and it does try";
}

TEST(BatchLimit, ForgetsOldTroubleAfterALongPeace) {
  BatchLimit limit;
  for (int i = 0; i < 30; ++i) limit.contended(100);
  for (int i = 0; i < 20; ++i) limit.passed(BatchLimit::kMostPatience);
  limit.contended(100);
  limit.passed(2 * BatchLimit::kLeastPatience);
  EXPECT_FALSE(limit.one_at_a_time());
}

}  // namespace
}  // namespace hapax::flow
