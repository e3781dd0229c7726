// Flow, watermark, lanes and retries under random schedules with a virtual clock. What broke is
// shrunk to a few steps, which are told.
#include "play.hpp"
#include "world.hpp"

namespace hapax::worker::simulation {
namespace {

TEST(Simulation, KeepsEveryPromiseUnderRandomSchedules) {
  play_seeds<World>(draw_schedule,
                    {"breaker", "contended for long", "ended after its partition was dropped",
                     "goes on with another order key", "goes on with its own order key", "halt",
                     "held back by the breaker", "in hand already", "put back",
                     "refused in caution", "several of an order key in a batch",
                     "several order keys in a batch", "stopped", "taken in caution"});
}

TEST(Shrink, FindsTheStepsThatMatter) {
  Schedule schedule = draw_schedule(1);
  const auto has = [](const Schedule& tried, Kind kind, std::uint64_t bit) {
    return std::ranges::any_of(tried.steps, [&](const Step& step) {
      return step.kind == kind && (step.draw & bit) == bit;
    });
  };
  const auto fails = [&](const Schedule& tried) {
    return has(tried, Kind::arrive, 1) && has(tried, Kind::wait, 0);
  };
  ASSERT_TRUE(fails(schedule));
  const Schedule small = shrink(schedule, fails);
  ASSERT_EQ(small.steps.size(), 2U);
  for (const Step& step : small.steps) EXPECT_LT(step.draw, 64U);
}

}  // namespace
}  // namespace hapax::worker::simulation
