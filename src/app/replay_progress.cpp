#include "app/replay_progress.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

namespace hapax::app {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAskAgain{250};
constexpr std::chrono::seconds kUntakenTimeout{15};
constexpr std::size_t kAskedAtOnce = 1000;
constexpr const char* kKinds[] = {"completed", "refused", "failed", "cancelled"};

void say_that_nobody_takes_them() {
  std::fprintf(
      stderr,
      "no worker has taken a replay for %lld s. Is one running with a route for this "
      "topic, of this group and release, and is its route not halted (`hapax status`)? "
      "The replays stay wanted; `hapax dead replay --cancel` ends them, ^C only this wait\n",
      static_cast<long long>(kUntakenTimeout.count()));
}

}  // namespace

bool ReplayOutcomes::all_completed() const {
  const auto completed = counts.find("completed");
  return ended == (completed == counts.end() ? 0 : completed->second);
}

std::string ReplayOutcomes::text() const {
  std::string text;
  for (const char* const kind : kKinds) {
    const auto found = counts.find(kind);
    text += (text.empty() ? "" : ", ") + std::to_string(found == counts.end() ? 0 : found->second) +
            " " + kind;
  }
  return text;
}

ReplayOutcomes await_replays(store::Session& session, store::LetterIds replays,
                             std::chrono::seconds longest_run, bool show) {
  ReplayOutcomes outcomes;
  const std::size_t all = replays.size();
  auto moved = steady_clock::now();
  std::int64_t runs_seen = 0;
  bool said = false;
  while (!replays.empty()) {
    const store::LetterIds asked(
        replays.begin(),
        replays.begin() + static_cast<std::ptrdiff_t>(std::min(kAskedAtOnce, replays.size())));
    store::LetterIds ended;
    bool waits = false, taken = false;
    std::int64_t runs = 0;
    for (const Json& row : store::read_progress(session, asked, longest_run)) {
      runs += row.at("runs").get<std::int64_t>();
      if (row.at("outcome").is_null()) {
        taken = taken || row.at("claimed") == true;
        waits = waits || row.at("due") == true;
        continue;
      }
      ended.push_back(row.at("id").get<std::int64_t>());
      ++outcomes.counts[row.at("outcome").get<std::string>()];
      ++outcomes.ended;
      if (row.at("outcome") != "completed" && outcomes.not_completed.size() < kMaxTold)
        outcomes.not_completed.push_back({{"dead_letter", row.at("dead_letter")},
                                          {"outcome", row.at("outcome")},
                                          {"detail", row.at("detail")}});
    }
    std::erase_if(replays, [&](std::int64_t id) {
      return std::ranges::binary_search(ended, id);  // they came in order
    });
    const auto now = steady_clock::now();
    if (!ended.empty() || taken || !waits || std::exchange(runs_seen, runs) != runs) moved = now;
    if (now - moved > kUntakenTimeout && !std::exchange(said, true)) say_that_nobody_takes_them();
    if (show) {
      std::printf("\r\x1b[Kreplayed %zu of %zu: %s", outcomes.ended, all, outcomes.text().c_str());
      std::fflush(stdout);
    }
    if (ended.empty()) std::this_thread::sleep_for(kAskAgain);  // ^C ends it
  }
  if (show) std::printf("\r\x1b[K");
  return outcomes;
}

}  // namespace hapax::app
