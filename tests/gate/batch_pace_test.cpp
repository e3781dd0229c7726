#include "gate/batch_pace.hpp"

#include <gtest/gtest.h>

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;

void pass(BatchPace& pace, std::size_t requests, std::chrono::microseconds each = 10us) {
  for (std::size_t i = 0; i < requests; ++i) pace.passed(1, each);
}

TEST(BatchPace, BeginsWithAllThatTheRouteAllows) {
  EXPECT_EQ(BatchPace(16).value(), 16U);
  EXPECT_EQ(BatchPace(1).value(), 1U);
}

TEST(BatchPace, HalvesAfterContentionAndComesBackTheLaterTheMoreOften) {
  BatchPace pace(16);
  pace.contended();
  EXPECT_EQ(pace.value(), 8U);
  pass(pace, 2 * BatchPace::kLeastPatience - 1);
  EXPECT_EQ(pace.value(), 8U);
  pass(pace, 1);
  EXPECT_EQ(pace.value(), 16U);
  for (int i = 0; i < 30; ++i) pace.contended();
  EXPECT_EQ(pace.value(), 1U);
  pass(pace, BatchPace::kMostPatience - 1);
  EXPECT_EQ(pace.value(), 1U);
  pass(pace, 1);
  EXPECT_EQ(pace.value(), 2U);
}

TEST(BatchPace, LosesOneForEachRequestThatLeavesAndComesBackAfterTransactionsWithout) {
  BatchPace pace(16);
  for (int i = 0; i < 3; ++i) pace.one_left();
  EXPECT_EQ(pace.value(), 13U);
  pace.passed(13, 100us);
  EXPECT_EQ(pace.value(), 14U);
  for (int i = 0; i < 100; ++i) pace.one_left();
  EXPECT_EQ(pace.value(), 1U);
  pass(pace, BatchPace::kLeastPatience);
  EXPECT_EQ(pace.value(), 2U);
}

TEST(BatchPace, SlowHandlersShareWithFewOrNone) {
  BatchPace pace(16);
  pass(pace, 50, 5ms);
  EXPECT_EQ(pace.value(), 4U);
  pass(pace, 50, 100ms);
  EXPECT_EQ(pace.value(), 1U);
  pass(pace, 100, 10us);
  EXPECT_EQ(pace.value(), 16U);
}

TEST(BatchPace, OfAHandlerThatCannotShareIsOneForLong) {
  BatchPace pace(16);
  pace.cannot_share();
  pass(pace, BatchPace::kMostPatience - 1);
  EXPECT_EQ(pace.value(), 1U);
}

}  // namespace
}  // namespace hapax::gate
