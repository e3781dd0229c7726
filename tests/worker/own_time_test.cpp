// Retention compares PostgreSQL's clock with this machine's time.
#include "worker/own_time.hpp"

#include <gtest/gtest.h>

namespace hapax::worker {
namespace {

using namespace std::chrono_literals;

template <class Of>
struct Given {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<Given>;
  static time_point now() { return time_point(at); }
  static inline duration at{0};
};
using Wall = Given<struct OfTheWall>;
using Elapsed = Given<struct SinceTheMachineStarted>;

TEST(OwnTime, FollowsASuspendedMachineAndNoClockThatIsSetAhead) {
  Wall::at = 1h;
  const OwnTime<Wall, Elapsed> own;
  Wall::at += 8h;  // suspended
  Elapsed::at += 8h;
  EXPECT_EQ(own.now().time_since_epoch(), 9h);
  Wall::at += 24h;  // set ahead
  EXPECT_EQ(own.now().time_since_epoch(), 9h);
  Wall::at = 2h;  // set back
  EXPECT_EQ(own.now().time_since_epoch(), 2h);
}

}  // namespace
}  // namespace hapax::worker
