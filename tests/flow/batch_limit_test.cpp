// Batches that run into each other become small, and stay so while they would again.
#include "flow/batch_limit.hpp"

#include <gtest/gtest.h>

namespace hapax::flow {
namespace {

TEST(BatchLimit, HalvesWhatRanIntoOthersWhateverItsOwnSizeWas) {
  BatchLimit limit;
  limit.contended(100);
  EXPECT_EQ(limit.value(), 50U);
  limit.contended(3);
  EXPECT_EQ(limit.value(), 1U);
}

TEST(BatchLimit, GrowsBackFromOne) {
  BatchLimit limit;
  limit.contended(2);
  for (int i = 0; i < 1'999; ++i) limit.passed(1);
  EXPECT_EQ(limit.value(), 1U);
  limit.passed(1);
  EXPECT_EQ(limit.value(), 2U);
  for (int i = 0; i < 100; ++i) limit.passed(1'000'000);
  EXPECT_EQ(limit.value(), BatchLimit::kMost);
}

// Batches of two or more meet a deadlock each time, for ever.
TEST(BatchLimit, TriesMoreTheLessOftenTheMoreOftenItFailed) {
  BatchLimit limit;
  int contended = 0;
  for (int settled = 0; settled < 2'000'000;) {
    if (limit.value() > 1) {
      limit.contended(std::min<std::size_t>(limit.value(), 100));
      ++contended;
    } else {
      limit.passed(1);
      ++settled;
    }
  }
  EXPECT_LT(contended, 20);
}

TEST(BatchLimit, ForgetsOldTroubleOnceAllWentWell) {
  BatchLimit limit;
  for (const std::size_t size : {100, 50, 25}) limit.contended(size);
  for (int i = 0; i < 200; ++i) limit.passed(1'000);
  EXPECT_EQ(limit.value(), BatchLimit::kMost);
  limit.contended(100);
  limit.passed(2 * BatchLimit::kLeastPatience);
  EXPECT_EQ(limit.value(), 100U);
}

}  // namespace
}  // namespace hapax::flow
