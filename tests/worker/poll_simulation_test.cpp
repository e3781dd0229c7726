// The poll thread under random schedules with a virtual clock: assignment, intake, pauses, caution
// and offset commits, on a Kafka in memory. What broke is shrunk to a few steps, which are told.
#include "play.hpp"
#include "poll_world.hpp"

namespace hapax::worker::poll_simulation {
namespace {

TEST(PollSimulation, KeepsEveryPromiseUnderRandomSchedules) {
  play_seeds<PollWorld>(
      draw_schedule, {"a record read again", "a rewritten log", "an error of the consumer",
                      "commit refused", "committed", "committed after a look", "fenced", "fetched",
                      "halt", "halt of a route", "paused", "resumed", "taken in caution",
                      "topic made again", "twice the queue", "unreadable"});
}

}  // namespace
}  // namespace hapax::worker::poll_simulation
