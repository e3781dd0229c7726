// What happens in one run of the simulation of lanes (simulation_test.cpp).
#pragma once

#include "steps.hpp"

namespace hapax::worker::simulation {

enum class Kind {
  arrive,      // messages come to a partition
  take,        // a lane that is free takes what it may
  next,        // a lane that has one message takes another to go on with
  end,         // a lane is through with what it took
  wait,        // time passes
  serve,       // the poll thread serves what lanes ask for
  revoke,      // a partition is taken away
  assign,      // one that is not there comes, or comes again
  cautious,    // one message at a time from now on
  trusting,    // no more
  checkpoint,  // a partition's watermark is written
  back,        // PostgreSQL is back for a lane
  pass,        // a partition's end is reached behind its last message
  stop,
};

using Step = StepOf<Kind>;

struct Ground {
  std::size_t lanes = 1;
  std::array<std::size_t, 2> batch{1, 1};  // by route
  int breaker = 0;
  bool hot = false;  // all messages of a partition are of one order key

  std::vector<Ground> simpler() const {
    Ground one_lane = *this, one_by_one = *this;
    one_lane.lanes = 1;
    one_by_one.batch = {1, 1};
    return {one_lane, one_by_one};
  }
};

using Schedule = ScheduleOf<Ground, Kind>;

inline Schedule draw_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::array<std::size_t, 5> kBatches{1, 1, 2, 5, 100};
  Schedule schedule;
  schedule.ground = {1 + random() % 4,
                     {kBatches[random() % kBatches.size()], kBatches[random() % kBatches.size()]},
                     static_cast<int>(random() % 4),
                     random() % 4 == 0};
  constexpr std::array<Weight<Kind>, 14> kWeights{{{Kind::arrive, 150},
                                                   {Kind::take, 260},
                                                   {Kind::next, 50},
                                                   {Kind::end, 290},
                                                   {Kind::wait, 100},
                                                   {Kind::serve, 25},
                                                   {Kind::revoke, 15},
                                                   {Kind::assign, 30},
                                                   {Kind::cautious, 8},
                                                   {Kind::trusting, 16},
                                                   {Kind::checkpoint, 25},
                                                   {Kind::back, 20},
                                                   {Kind::pass, 10},
                                                   {Kind::stop, 1}}};
  schedule.steps = draw_steps(random, kWeights);
  return schedule;
}

}  // namespace hapax::worker::simulation
