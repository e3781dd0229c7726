#include "worker/shutdown.hpp"

#include <algorithm>
#include <future>
#include <thread>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kLeastForRelease{1000};
constexpr milliseconds kLeastForThreads{500};
constexpr milliseconds kForStopping{2000};

}  // namespace

Ended Shutdown::leave() {
  health_.draining();
  log::info("stopping", {{"partitions", poll_.partitions()}}, "draining; again to stop at once");
  const auto until = Clock::now() + settings_.shutdown_timeout;
  threads_.wind_down();
  const auto left = [&] {
    const auto rest = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    return std::max(rest, milliseconds(0));
  };
  const auto drained_by = Clock::now() + std::min(left(), settings_.revoke_timeout);
  const auto drained = poll_.drain_all(std::min(left(), settings_.revoke_timeout));
  lanes_.dispatcher.stop();
  // Also waits for messages of partitions that were halted or taken away meanwhile.
  const bool lanes_idle = threads_.calls_run() ? calls_end_until(until - kLeastForRelease)
                                               : lanes_.dispatcher.wait_all_idle(drained_by);
  const bool released =
      keeper_.release(drained.partitions, drained.idle, std::max(left() / 2, kLeastForRelease));
  poll_.leave(drained, until);
  const bool closed = left().count() > 0 && consumer_.close(left());
  log::info("stopped", {{"left_group", closed}}, "stopped");
  // A replay has the same time. If it is cut off, it counts as one more run.
  const bool replays_idle = replays_end_until(until);
  if (!lanes_idle) threads_.tell_not_kept();
  if (threads_.call_hangs()) return Ended::handler_hangs;
  if (!lanes_idle) {
    if (drained.idle) threads_.tell_running();
    if (threads_.handlers_run() && !lanes_.postgres.is_down()) return Ended::handlers_run;
    return Ended::gave_up_waiting;
  }
  // If PostgreSQL does not answer, to wait for it would take longer than shutdown_timeout.
  if (!closed || !replays_idle || !released || lanes_.postgres.is_down())
    return Ended::gave_up_waiting;
  return end_threads_until(until) ? Ended::stopped : Ended::gave_up_waiting;
}

// Calls have nearly all of the time. Then those that still run are asked to stop.
bool Shutdown::calls_end_until(Clock::time_point until) {
  if (lanes_.dispatcher.wait_all_idle(until - kForStopping)) return true;
  threads_.ask_calls_to_stop();
  return lanes_.dispatcher.wait_all_idle(until);
}

bool Shutdown::replays_end_until(Clock::time_point until) {
  if (threads_.replays_are_idle(until - kForStopping)) return true;
  threads_.ask_calls_to_stop();
  return threads_.replays_are_idle(until);
}

void Shutdown::end_threads() {
  threads_.end();
  keeper_.stop();
}

// Lanes, retention and starts may wait for a statement that hangs. False if one does: it still
// uses the worker.
bool Shutdown::end_threads_until(Clock::time_point until) {
  std::packaged_task<void()> end([this] { end_threads(); });
  const std::future<void> ended = end.get_future();
  std::thread(std::move(end)).detach();
  return ended.wait_until(std::max(until, Clock::now() + kLeastForThreads)) ==
         std::future_status::ready;
}

}  // namespace hapax::worker
