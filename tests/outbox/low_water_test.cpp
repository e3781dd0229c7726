#include "outbox/low_water.hpp"

#include <gtest/gtest.h>

namespace hapax::outbox {
namespace {

TEST(LowWater, PassesNothingThatARunningTransactionMayStillLeave) {
  LowWater water;
  EXPECT_EQ(water.mark(), 0);
  water.read(10, {"3/7"});  // 3/7 may have drawn 9
  EXPECT_EQ(water.mark(), 0);
  water.read(20, {"3/7", "4/1"});
  EXPECT_EQ(water.mark(), 0);
  water.read(30, {"4/1"});  // 3/7 has ended, perhaps only after this read
  EXPECT_EQ(water.mark(), 0);
  water.read(40, {"4/1"});  // this one has seen what it left
  EXPECT_EQ(water.mark(), 10);
}

TEST(LowWater, PassesAtTheSecondReadIfNoTransactionHasDrawnAnId) {
  LowWater water;
  water.read(10, {});
  EXPECT_EQ(water.mark(), 0);
  water.read(20, {});
  EXPECT_EQ(water.mark(), 10);
  water.read(20, {});
  EXPECT_EQ(water.mark(), 20);
}

// The writers of the first read were those that count; others have drawn higher ids.
TEST(LowWater, IsNotHeldUpByTransactionsThatBeganLater) {
  LowWater water;
  water.read(10, {"1/1"});
  water.read(11, {"2/2"});
  water.read(12, {"3/3"});
  EXPECT_EQ(water.mark(), 10);
}

TEST(LowWater, IsNotPassedByAReadThatWasBoundedBelowIt) {
  LowWater water;
  water.read(10, {});
  water.read(5, {});
  EXPECT_EQ(water.mark(), 0);
}

TEST(LowWater, BeginsAgainWhenReset) {
  LowWater water;
  water.read(10, {});
  water.read(10, {});
  EXPECT_EQ(water.mark(), 10);
  water.reset();
  EXPECT_EQ(water.mark(), 0);
}

}  // namespace
}  // namespace hapax::outbox
