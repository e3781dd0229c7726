// How many records a transaction gets, and how long it may take.
#include "outbox/pace.hpp"

#include <gtest/gtest.h>

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

constexpr Pace::Limits kLimits{.most = 100, .shortest = 10s, .longest = 50s};

TEST(Pace, AFailureHalvesTheNumberAndEachSuccessDoublesIt) {
  Pace pace(kLimits);
  pace.smaller(80);
  EXPECT_EQ(pace.most(), 40U);
  pace.smaller(1);
  EXPECT_EQ(pace.most(), 1U);
  for (int i = 0; i < 3; ++i) pace.sent(1s);
  EXPECT_EQ(pace.most(), 8U);
  for (int i = 0; i < 10; ++i) pace.sent(1s);
  EXPECT_EQ(pace.most(), 100U);
}

TEST(Pace, ATransactionGetsLongerOnlyUpToTheLimit) {
  Pace pace(kLimits);
  EXPECT_TRUE(pace.longer());
  EXPECT_EQ(pace.timeout(), 20s);
  EXPECT_TRUE(pace.longer());
  EXPECT_TRUE(pace.longer());
  EXPECT_EQ(pace.timeout(), 50s);
  EXPECT_FALSE(pace.longer());
}

TEST(Pace, ATransactionStaysLongWhileThatIsNeededAndIsShortAgainAfterIt) {
  Pace pace(kLimits);
  pace.longer();
  pace.sent(15s);
  EXPECT_EQ(pace.timeout(), 20s);
  pace.sent(1s);
  EXPECT_EQ(pace.timeout(), 10s);
  pace.sent(1s);
  EXPECT_EQ(pace.timeout(), 10s);
}

TEST(Pace, NoTransactionIsLongerThanKafkaAllows) {
  Pace pace(kLimits);
  pace.longer();
  EXPECT_TRUE(pace.shorter());
  EXPECT_EQ(pace.timeout(), 10s);
  EXPECT_FALSE(pace.longer());
  EXPECT_FALSE(pace.shorter());
}

}  // namespace
}  // namespace hapax::outbox
