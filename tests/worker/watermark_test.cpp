#include "worker/watermark.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace hapax::worker {
namespace {

TEST(Watermark, HoldsUntilLowestOffsetSettles) {
  Watermark watermark(10);
  for (const std::int64_t offset : {10, 11, 12}) EXPECT_TRUE(watermark.receive(offset));
  watermark.settle(12);
  watermark.settle(11);
  EXPECT_EQ(watermark.value(), 10);
  EXPECT_EQ(watermark.highest_settled(), 13);
  watermark.settle(10);
  EXPECT_EQ(watermark.value(), 13);
}

TEST(Watermark, KnowsSinceWhenItsMessageWaits) {
  Watermark watermark(10);
  const auto at = [](int second) { return Watermark::Time(std::chrono::seconds(second)); };
  EXPECT_EQ(watermark.waiting_since(), std::nullopt);
  for (const int offset : {10, 11, 12}) watermark.receive(offset, at(offset));
  watermark.settle(11);
  EXPECT_EQ(watermark.waiting_since(), at(10));
  watermark.settle(10);
  EXPECT_EQ(watermark.waiting_since(), at(12));
  watermark.settle(12);
  EXPECT_EQ(watermark.waiting_since(), std::nullopt);
}

TEST(Watermark, PassesHolesThatCompactionLeft) {
  Watermark watermark(0);
  for (const std::int64_t offset : {3, 90, 91}) watermark.receive(offset);
  EXPECT_EQ(watermark.value(), 3);
  watermark.settle(3);
  EXPECT_EQ(watermark.value(), 90);
}

TEST(Watermark, TakesAnOffsetOnceHoweverOftenItComes) {
  Watermark watermark(5);
  EXPECT_FALSE(watermark.receive(4));
  EXPECT_TRUE(watermark.receive(5));
  EXPECT_FALSE(watermark.receive(5));
  watermark.settle(5);
  EXPECT_FALSE(watermark.receive(5));
  watermark.settle(5);
  EXPECT_EQ(watermark.value(), 6);
}

TEST(Watermark, ReachesTheEndBehindControlRecordsOnlyWhenAllIsSettled) {
  Watermark watermark(0);
  watermark.receive(0);
  watermark.pass(2);  // offset 1 is a transaction marker
  EXPECT_EQ(watermark.value(), 0);
  watermark.settle(0);
  EXPECT_EQ(watermark.value(), 2);
  EXPECT_EQ(watermark.highest_settled(), 1);
  watermark.pass(2);
  EXPECT_EQ(watermark.highest_settled(), 2);
}

TEST(Watermark, NeverGoesBack) {
  Watermark watermark(7);
  watermark.pass(3);
  EXPECT_EQ(watermark.value(), 7);
}

TEST(WatermarkDeathTest, SettlingWhatWasNeverReceivedIsABrokenInvariant) {
  Watermark watermark(0);
  watermark.receive(4);
  EXPECT_DEATH(watermark.settle(9), "never received");
}

// Against a model that keeps every received and settled offset.
TEST(Watermark, AgreesWithAModelUnderRandomOrders) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Watermark watermark(0);
    std::vector<std::int64_t> unsettled;
    std::int64_t next = 0;
    for (int step = 0; step < 100; ++step) {
      if (unsettled.empty() || random() % 2 == 0) {
        next += 1 + random() % 3;
        ASSERT_TRUE(watermark.receive(next));
        unsettled.push_back(next);
      } else {
        const std::size_t at = random() % unsettled.size();
        watermark.settle(unsettled[at]);
        unsettled.erase(unsettled.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const std::int64_t expected =
          unsettled.empty() ? next + 1 : *std::ranges::min_element(unsettled);
      ASSERT_EQ(watermark.value(), expected);
    }
  }
}

// A checkpoint keeps it, so that the next start can look whether the log is still the same.
TEST(Watermark, KnowsTheLastRecordBelowIt) {
  Watermark watermark(10);
  EXPECT_FALSE(watermark.last_below());
  for (const std::int64_t offset : {10, 12, 15}) watermark.receive({offset, 1000 + offset, 7}, {});
  watermark.settle(12);
  EXPECT_FALSE(watermark.last_below()) << "nothing below 10 was read";
  watermark.settle(10);
  ASSERT_TRUE(watermark.last_below());
  EXPECT_EQ(watermark.last_below()->offset, 12);
  EXPECT_EQ(watermark.last_below()->timestamp_ms, 1012);
  EXPECT_EQ(watermark.last_below()->bytes, 7U);
}

}  // namespace
}  // namespace hapax::worker
