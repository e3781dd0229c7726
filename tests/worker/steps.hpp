// What the simulations share: schedules of steps. They are drawn from a seed beforehand, so that
// they can be played again, and shrunk to the few steps that break something.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace hapax::worker::simulation {

// A promise was broken, which its text names.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void hold(bool promise, const std::string& broken) {
  if (!promise) throw Broken(broken);
}

// How often something came up that a simulation exists for.
using Reached = std::map<std::string, int>;

// A step decides nothing by chance when it is played: `who` is a lane or a partition, `draw` all
// the rest. 0 is the simplest of its kind. If a step makes no sense it does nothing.
template <class Kind>
struct StepOf {
  Kind kind{};
  unsigned who = 0;
  std::uint64_t draw = 0;
};

template <class Ground_, class Kind>
struct ScheduleOf {
  using Ground = Ground_;
  Ground ground;
  std::vector<StepOf<Kind>> steps;
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

template <class Kind>
struct Weight {
  Kind kind;
  unsigned of_thousand;
};

template <class Kind, std::size_t count>
std::vector<StepOf<Kind>> draw_steps(std::mt19937_64& random,
                                     const std::array<Weight<Kind>, count>& weights) {
  std::vector<StepOf<Kind>> steps;
  for (std::size_t left = 30 + random() % 150; left > 0; --left) {
    auto drawn = static_cast<unsigned>(random() % 1000);
    std::size_t kind = 0;
    while (drawn >= weights[kind].of_thousand) drawn -= weights[kind++].of_thousand;
    steps.push_back({weights[kind].kind, static_cast<unsigned>(random() % 12), random()});
  }
  return steps;
}

// The smallest schedule found that still fails: chunks go, then single steps, then what is special
// about those that stay. `fails`: whether a schedule does. Precondition: this one does.
template <class Schedule, class Fails>
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
  for (std::size_t i = 0; i < schedule.ground.simpler().size(); ++i)
    try_instead(Schedule{schedule.ground.simpler()[i], schedule.steps});
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
