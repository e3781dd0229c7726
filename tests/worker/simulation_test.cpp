// Flow, watermark, lanes and retries under random schedules with a virtual clock. What broke is
// shrunk to a few steps, which are told.
//
//   HAPAX_SIMULATION_SEEDS=100000  plays so many seeds (a night's worth)
//   HAPAX_SIMULATION_SEED=17       plays that one
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "observe/log.hpp"
#include "world.hpp"

namespace hapax::worker::simulation {
namespace {

constexpr std::uint64_t kSeeds = 250;

struct Played {
  std::string broken;  // empty: every promise held
  Reached reached = {};
};

// In the process that it may take down.
std::string play_here(const Schedule& schedule, Reached& reached) {
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  observe::Metrics metrics({});
  World world(schedule.ground, metrics);
  try {
    for (const Step& step : schedule.steps) world.play(step);
    world.finish();
  } catch (const std::exception& error) {
    std::string text = std::string(error.what()) + "\n";
    for (const std::string& line : world.story()) text += "  " + line + "\n";
    return text;
  }
  reached = world.reached();
  return {};
}

[[noreturn]] void be_the_child(const Schedule& schedule, int answer) {
  dup2(answer, STDERR_FILENO);  // of a broken invariant, or a sanitizer
  Reached reached;
  std::string text = play_here(schedule, reached);
  const bool broken = !text.empty();
  for (const auto& [what, count] : reached) text += std::to_string(count) + " " + what + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(answer, text.data() + at, text.size() - at);
    if (written < 0) _exit(2);
    at += static_cast<std::size_t>(written);
  }
  _exit(broken ? 1 : 0);
}

// In a process of its own: a broken invariant ends it, and the schedule is shrunk all the same.
Played play(const Schedule& schedule) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    be_the_child(schedule, ends[1]);
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
  for (std::string what; lines >> std::ws, std::getline(lines, what);) {
    const std::size_t space = what.find(' ');
    played.reached[what.substr(space + 1)] = std::stoi(what);
  }
  return played;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Simulation, KeepsEveryPromiseUnderRandomSchedules) {
  const std::uint64_t only = from_environment("HAPAX_SIMULATION_SEED", 0);
  const std::uint64_t first = only == 0 ? 1 : only;
  const std::uint64_t last = only == 0 ? from_environment("HAPAX_SIMULATION_SEEDS", kSeeds) : only;
  Reached reached;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Schedule schedule = draw_schedule(seed);
    const Played played = play(schedule);
    for (const auto& [what, count] : played.reached) reached[what] += count;
    if (played.broken.empty()) continue;
    const Schedule small =
        shrink(schedule, [](const Schedule& tried) { return !play(tried).broken.empty(); });
    FAIL() << "seed " << seed << " (HAPAX_SIMULATION_SEED=" << seed
           << " plays it again), shrunk to " << small.steps.size() << " of "
           << schedule.steps.size() << " steps:\n"
           << play(small).broken;
  }
  if (last - first + 1 < kSeeds) return;
  for (const char* const what :
       {"breaker", "contended for long", "ended after its partition was dropped",
        "goes on with another order key", "goes on with its own order key", "halt",
        "held back by the breaker", "in hand already", "put back", "refused in caution",
        "several of an order key in a batch", "several order keys in a batch", "stopped",
        "taken in caution"})
    EXPECT_GE(reached[what], 10) << what
                                 << " hardly ever came up: the simulation shows nothing of it";
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
