#include "worker/repetitions.hpp"

#include <gtest/gtest.h>

namespace hapax::worker {
namespace {

TEST(Repetitions, OfATextAreLoggedOnceAMinute) {
  Repetitions repetitions;
  const std::chrono::steady_clock::time_point begin{};
  EXPECT_TRUE(repetitions.is_due("one", begin));
  EXPECT_FALSE(repetitions.is_due("one", begin + std::chrono::seconds(59)));
  EXPECT_TRUE(repetitions.is_due("other", begin + std::chrono::seconds(59)));
  EXPECT_TRUE(repetitions.is_due("one", begin + std::chrono::seconds(60)));
  EXPECT_FALSE(repetitions.is_due("one", begin + std::chrono::seconds(61)));
}

}  // namespace
}  // namespace hapax::worker
