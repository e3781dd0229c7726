// An outage as all threads of a worker see it.
#include "worker/postgres_state.hpp"

#include <gtest/gtest.h>

namespace hapax::worker {
namespace {

using namespace std::chrono_literals;

struct PostgresStateTest : testing::Test {
  observe::Health health;
  observe::Metrics metrics{{}};
  PostgresState state{health, metrics, 0ms};
};

// Its answer "the database system is starting up" came late. It was a second outage in the log.
TEST_F(PostgresStateTest, ATryThatBeganBeforeAnotherSucceededTellsNothing) {
  state.went_down("connecting", "", "refused");
  const auto tried_at = PostgresState::Clock::now();
  state.came_up();
  state.went_down("connecting", "", "starting up", tried_at);
  EXPECT_FALSE(state.is_down());
  state.went_down("connecting", "", "refused", PostgresState::Clock::now());
  EXPECT_TRUE(state.is_down());
}

}  // namespace
}  // namespace hapax::worker
