// What happens in one run of the simulation (simulation_test.cpp): drawn from a seed beforehand, so
// that it can be played again, and shrunk to the few steps that break something.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

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

// A step decides nothing by chance when it is played: `who` is a lane or a partition, `draw` all
// the rest. 0 is the simplest of its kind. Where a step makes no sense it does nothing.
struct Step {
  Kind kind = Kind::wait;
  unsigned who = 0;
  std::uint64_t draw = 0;
};

struct Ground {
  std::size_t lanes = 1;
  std::array<std::size_t, 2> batch{1, 1};  // by route
  int breaker = 0;
  bool hot = false;  // all messages of a partition are of one order key
};

struct Schedule {
  Ground ground;
  std::vector<Step> steps;
};

// Takes a draw apart.
class Digits {
 public:
  explicit Digits(std::uint64_t draw) : rest_(draw) {}
  // In [0, base); 0 once nothing is left.
  unsigned next(unsigned base) {
    const auto digit = static_cast<unsigned>(rest_ % base);
    rest_ /= base;
    return digit;
  }

 private:
  std::uint64_t rest_;
};

inline Schedule draw_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::array<std::size_t, 5> kBatches{1, 1, 2, 5, 100};
  Schedule schedule;
  schedule.ground = {1 + random() % 4,
                     {kBatches[random() % kBatches.size()], kBatches[random() % kBatches.size()]},
                     static_cast<int>(random() % 4),
                     random() % 4 == 0};
  struct Weight {
    Kind kind;
    unsigned of_thousand;
  };
  constexpr std::array<Weight, 14> kWeights{{{Kind::arrive, 150},
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
  for (std::size_t left = 30 + random() % 150; left > 0; --left) {
    auto drawn = static_cast<unsigned>(random() % 1000);
    std::size_t kind = 0;
    while (drawn >= kWeights[kind].of_thousand) drawn -= kWeights[kind++].of_thousand;
    schedule.steps.push_back({kWeights[kind].kind, static_cast<unsigned>(random() % 12), random()});
  }
  return schedule;
}

// The smallest schedule found that still fails: chunks go, then single steps, then what is special
// about those that stay. `fails`: whether a schedule does. Precondition: this one does.
template <class Fails>
Schedule shrink(Schedule schedule, const Fails& fails) {
  const auto try_instead = [&](const Schedule& smaller) {
    if (!fails(smaller)) return false;
    schedule = smaller;
    return true;
  };
  const auto without = [&](std::size_t from, std::size_t count) {
    Schedule smaller = schedule;
    const auto begin = smaller.steps.begin() + static_cast<std::ptrdiff_t>(from);
    smaller.steps.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
    return smaller;
  };
  for (std::size_t chunk = std::max<std::size_t>(1, schedule.steps.size() / 2); chunk > 0;) {
    bool any = false;
    for (std::size_t end = schedule.steps.size(); end > 0;) {
      const std::size_t from = end > chunk ? end - chunk : 0;
      any = try_instead(without(from, end - from)) || any;
      end = from;
    }
    if (chunk > 1 || !any) chunk /= 2;
  }
  Schedule one_lane = schedule;
  one_lane.ground.lanes = 1;
  try_instead(one_lane);
  Schedule one_by_one = schedule;
  one_by_one.ground.batch = {1, 1};
  try_instead(one_by_one);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    for (std::uint64_t mask = 0; mask < schedule.steps[i].draw; mask = mask << 1 | 1) {
      Schedule simpler = schedule;
      simpler.steps[i].draw &= mask;
      if (try_instead(simpler)) break;
    }
  }
  return schedule;
}

}  // namespace hapax::worker::simulation
