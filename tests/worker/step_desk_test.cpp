// A caller's thread waits for PostgreSQL, and not for ever.
#include "worker/step_desk.hpp"

#include <gtest/gtest.h>

namespace hapax::worker {
namespace {

TEST(StepDesk, LetsACallerGoThatHadToStopLongAgo) {
  int woken = 0;
  StepDesk desk([&] { ++woken; });
  std::stop_source stop;
  stop.request_stop();
  const outside::StepOwner owner{
      .identity = {},
      .scope = {},
      .stop = stop.get_token(),
      .deadline = std::chrono::steady_clock::now() - std::chrono::minutes(1)};
  EXPECT_THROW(desk.read(owner), std::runtime_error);
  EXPECT_THROW(desk.keep(owner, {}, {}), std::runtime_error);
  EXPECT_EQ(woken, 2);
}

}  // namespace
}  // namespace hapax::worker
