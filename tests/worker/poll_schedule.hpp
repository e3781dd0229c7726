// What happens in one run of the simulation of the poll thread (poll_simulation_test.cpp).
#pragma once

#include "steps.hpp"

namespace hapax::worker::poll_simulation {

using namespace simulation;

enum class Kind {
  produce,     // messages come to a partition's log
  poll,        // the consumer hands something of a partition out
  turn,        // the poll thread's turn
  take,        // a lane that is free takes what it may
  end,         // a lane is through with what it took
  wait,        // time passes
  agree,       // the keeper agrees the start of a partition
  checkpoint,  // the keeper writes checkpoints, and finds what it has lost
  look,        // the keeper looks at the logs
  answer,      // Kafka answers a commit
  assign,      // the group assigns a partition
  revoke,      // the group takes it away
  fence,       // another worker, or an operator, takes or moves its checkpoint
  resume,      // an operator ends its halt
  fail,        // the consumer reports an error of it
  remake,      // its topic is made again, or its log loses its end and grows again
};

using Step = StepOf<Kind>;

struct Ground {
  std::size_t lanes = 1;
  std::size_t batch = 1;
  std::size_t queue = 4;  // messages
  bool has_ids = true;    // topics have
  bool hot = false;       // all messages of a partition are of one order key

  std::vector<Ground> simpler() const {
    Ground one_lane = *this, one_by_one = *this;
    one_lane.lanes = 1;
    one_by_one.batch = 1;
    return {one_lane, one_by_one};
  }
};

using Schedule = ScheduleOf<Ground, Kind>;

inline Schedule draw_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Schedule schedule;
  schedule.ground = {.lanes = 1 + random() % 3,
                     .batch = 1 + random() % 3,
                     .queue = 2 + random() % 8,
                     .has_ids = random() % 2 == 0,
                     .hot = random() % 4 == 0};
  constexpr std::array<Weight<Kind>, 16> kWeights{{{Kind::produce, 115},
                                                   {Kind::poll, 240},
                                                   {Kind::turn, 145},
                                                   {Kind::take, 90},
                                                   {Kind::end, 90},
                                                   {Kind::wait, 50},
                                                   {Kind::agree, 60},
                                                   {Kind::checkpoint, 40},
                                                   {Kind::look, 15},
                                                   {Kind::answer, 40},
                                                   {Kind::assign, 30},
                                                   {Kind::revoke, 25},
                                                   {Kind::fence, 20},
                                                   {Kind::resume, 10},
                                                   {Kind::fail, 20},
                                                   {Kind::remake, 10}}};
  schedule.steps = draw_steps(random, kWeights);
  return schedule;
}

}  // namespace hapax::worker::poll_simulation
