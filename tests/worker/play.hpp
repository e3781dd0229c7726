// Plays schedules in a World, each in a process of its own, and shrinks what breaks it.
//
//   HAPAX_SIMULATION_SEEDS=100000  plays so many seeds (a night's worth)
//   HAPAX_SIMULATION_SEED=17       plays that one
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <string>

#include "observe/log.hpp"
#include "observe/metrics.hpp"
#include "steps.hpp"

namespace hapax::worker::simulation {

inline constexpr std::uint64_t kSeeds = 250;
inline const std::string kReached = "reached ";  // begins these lines, between those of the log

struct Played {
  std::string broken;  // empty: every promise held
  Reached reached = {};
};

// In the process that it may take down.
template <class World, class Schedule>
std::string play_here(const Schedule& schedule, Reached& reached) {
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  observe::Metrics metrics({});
  World world(schedule.ground, metrics);
  try {
    for (const auto& step : schedule.steps) world.play(step);
    world.finish();
  } catch (const std::exception& error) {
    std::string text = std::string(error.what()) + "\n";
    for (const std::string& line : world.story()) text += "  " + line + "\n";
    return text;
  }
  reached = world.reached();
  return {};
}

template <class World, class Schedule>
[[noreturn]] void be_the_child(const Schedule& schedule, int answer) {
  dup2(answer, STDERR_FILENO);  // of a broken invariant, or a sanitizer
  Reached reached;
  std::string text = play_here<World>(schedule, reached);
  const bool broken = !text.empty();
  for (const auto& [what, count] : reached)
    text += kReached + std::to_string(count) + " " + what + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(answer, text.data() + at, text.size() - at);
    if (written < 0) _exit(2);
    at += static_cast<std::size_t>(written);
  }
  _exit(broken ? 1 : 0);
}

// In a process of its own: a broken invariant ends it, and the schedule is shrunk all the same.
template <class World, class Schedule>
Played play(const Schedule& schedule) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    be_the_child<World>(schedule, ends[1]);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) text += "the process died of signal " + std::to_string(WTERMSIG(status));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {text};
  Played played;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kReached)) continue;
    const std::size_t space = line.find(' ', kReached.size());
    played.reached[line.substr(space + 1)] = std::stoi(line.substr(kReached.size()));
  }
  return played;
}

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// `draw`: the schedule of a seed. `must_reach`: what all seeds together come across ten times.
template <class World, class Draw>
void play_seeds(const Draw& draw, std::initializer_list<const char*> must_reach) {
  const std::uint64_t only = from_environment("HAPAX_SIMULATION_SEED", 0);
  const std::uint64_t first = only == 0 ? 1 : only;
  const std::uint64_t last = only == 0 ? from_environment("HAPAX_SIMULATION_SEEDS", kSeeds) : only;
  Reached reached;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const auto schedule = draw(seed);
    const Played played = play<World>(schedule);
    for (const auto& [what, count] : played.reached) reached[what] += count;
    if (played.broken.empty()) continue;
    const auto small =
        shrink(schedule, [](const auto& tried) { return !play<World>(tried).broken.empty(); });
    FAIL() << "seed " << seed << " (HAPAX_SIMULATION_SEED=" << seed
           << " plays it again), shrunk to " << small.steps.size() << " of "
           << schedule.steps.size() << " steps:\n"
           << play<World>(small).broken;
  }
  if (last - first + 1 < kSeeds) return;
  for (const char* const what : must_reach)
    EXPECT_GE(reached[what], 10) << what
                                 << " hardly ever came up: the simulation shows nothing of it";
}

}  // namespace hapax::worker::simulation
