#include "worker/lane.hpp"

#include "observe/log.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using flow::Result;
using std::chrono::milliseconds;

// Serialization failures and deadlocks run again at once, this often; then they wait, too.
constexpr int kMaxAgains = 20;
constexpr milliseconds kAgainsWait{1000};

constexpr milliseconds kFirstReconnectWait{100};
constexpr milliseconds kMaxReconnectWait{2000};

observe::SettledAs settled_as(Result result) {
  switch (result) {
    case Result::duplicate: return observe::SettledAs::duplicate;
    case Result::failed: return observe::SettledAs::failed;
    case Result::skipped: return observe::SettledAs::skipped;
    default: return observe::SettledAs::completed;
  }
}

}  // namespace

Lane::Lane(LaneSetup& setup, std::vector<std::unique_ptr<Handler>> handlers,
           std::uint64_t seed)
    : setup_(setup),
      handlers_(std::move(handlers)),
      route_metrics_(setup.route_metrics),
      processor_(setup.connect, seed),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Lane::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<Work> work = setup_.dispatcher.take();
    if (!work) return;
    setup_.metrics.lane_became_busy();
    run_one(std::move(*work), stop);
    setup_.metrics.lane_became_free();
  }
}

void Lane::run_one(Work work, const std::stop_token& stop) {
  Partition& partition = *work.partition;
  const Message& message = work.item.record->message();
  const Beginning& beginning = partition.beginning();
  const auto skip = beginning.ahead.skips.find(message.offset());
  const flow::Task task{partition.route(),
                        message,
                        setup_.group,
                        beginning.generation,
                        beginning.guard_below,
                        work.item.attempts,
                        work.item.outages,
                        work.cautious,
                        skip == beginning.ahead.skips.end() ? nullptr : &skip->second};
  const auto began = Clock::now();
  set_running(Running{work.partition, message.offset(), began});
  const Outcome outcome = processor_.process(task, *handlers_[partition.route_index()]);
  set_running(std::nullopt);
  route_metrics_[partition.route_index()].transaction_ended(Clock::now() - began);
  count(work, outcome);
  log_outcome(work, outcome);

  if (flow::is_settled(outcome.result)) {
    setup_.postgres.came_up();
    watch_for_breaks(work, outcome);
    const std::size_t bytes = work.item.record->bytes();
    partition.settle(message.offset(), bytes);
    setup_.dispatcher.settled(std::move(work));
    return;
  }
  if (flow::is_halt(outcome.result)) {
    const store::Halt halt{0,
                           partition.id().first,
                           partition.id().second,
                           outcome.result == Result::halt_route,
                           beginning.generation,
                           message.offset(),
                           outcome.reason,
                           outcome.detail,
                           {},
                           setup_.worker_name};
    // First of its order key for ever: nothing behind it may pass before the halt is served.
    setup_.notices.post(HaltWanted{work.partition, halt, false});
    setup_.dispatcher.again(std::move(work), std::chrono::hours(24));
    return;
  }
  work.item.agains = outcome.result == Result::again ? work.item.agains + 1 : 0;
  milliseconds pause = outcome.wait;
  if (outcome.result == Result::retry) work.item.attempts = outcome.attempts;
  // Apart from each other, or the same two meet again.
  if (work.item.agains > 0) pause = milliseconds(work.item.agains * (1 + message.offset() % 7));
  if (work.item.agains >= kMaxAgains) pause = kAgainsWait;
  const bool outage = outcome.result == Result::outage;
  if (outcome.lost_in_handler) ++work.item.outages;
  setup_.dispatcher.again(std::move(work), pause);
  if (outage) {
    setup_.postgres.went_down("processing a message", outcome.sqlstate, outcome.detail);
    wait_for_postgres(stop);
  }
}

void Lane::watch_for_breaks(const Work& work, const Outcome& outcome) {
  Breaker& breaker = setup_.breakers[work.partition->route_index()];
  if (outcome.result == Result::completed) breaker.completed();
  if (outcome.result != Result::failed || outcome.reason == "redelivered") return;
  const std::string cause =
      outcome.reason + (outcome.sqlstate.empty() ? "" : " (SQLSTATE " + outcome.sqlstate + ")");
  if (!breaker.gave_up(cause)) return;
  const TopicPartition& id = work.partition->id();
  setup_.notices.post(HaltWanted{
      work.partition,
      {0, id.first, id.second, true, work.partition->beginning().generation, {}, "breaker",
       "as many messages in a row as routes[].breaker says were given up on for one cause: " +
           cause + "; the last is offset " +
           std::to_string(work.item.record->message().offset()) + ", see `hapax dead list`",
       {}, setup_.worker_name},
      false});
}

void Lane::set_running(const std::optional<Running>& running) {
  const std::lock_guard lock(running_mutex_);
  running_ = running;
}

std::optional<Lane::Running> Lane::running() const {
  const std::lock_guard lock(running_mutex_);
  return running_;
}

void Lane::count(const Work& work, const Outcome& outcome) {
  observe::RouteMetrics& route = route_metrics_[work.partition->route_index()];
  if (outcome.handler_time.count() > 0) route.handler_ran(outcome.handler_time);
  if (flow::is_settled(outcome.result)) {
    route.settled(settled_as(outcome.result));
    if (outcome.result == Result::failed) route.dead_lettered(outcome.reason);
  } else if (outcome.result == Result::retry) {
    route.attempted();
  } else if (outcome.result == Result::again && outcome.reason == "serialization") {
    setup_.metrics.serialization_retried();
  }
}

// Never the detail: it may quote the message. `hapax dead show` and `status` have it.
void Lane::log_outcome(const Work& work, const Outcome& outcome) const {
  const Coordinates& at = work.item.record->message().coordinates();
  if (outcome.result == Result::failed) {
    observe::log::warning("dead_letter",
                          {{"topic", at.topic},
                           {"partition", at.partition},
                           {"offset", at.offset},
                           {"reason", outcome.reason},
                           {"sqlstate", outcome.sqlstate},
                           {"attempts", outcome.attempts}},
                          "gave a message up; it is kept whole in hapax.dead_letters");
  } else if (outcome.result == Result::retry) {
    observe::log::warning("attempt_failed",
                          {{"topic", at.topic},
                           {"partition", at.partition},
                           {"offset", at.offset},
                           {"sqlstate", outcome.sqlstate},
                           {"attempts", outcome.attempts},
                           {"next_try_ms", outcome.wait.count()}},
                          "a message failed and waits; the error is in hapax.attempts");
  } else if (outcome.result == Result::again && work.item.agains + 1 == kMaxAgains) {
    observe::log::warning("contended",
                          {{"topic", at.topic},
                           {"partition", at.partition},
                           {"offset", at.offset},
                           {"sqlstate", outcome.sqlstate}},
                          "a message was run again many times for serialization failures or "
                          "deadlocks, and waits longer now");
  }
}

void Lane::wait_for_postgres(const std::stop_token& stop) {
  milliseconds pause = kFirstReconnectWait;
  std::string why;
  while (!stop.stop_requested()) {
    wait_unless_stopped(stop, pause);
    if (processor_.reachable(why)) {
      setup_.postgres.came_up();
      return;
    }
    pause = std::min(pause * 2, kMaxReconnectWait);
  }
}

}  // namespace hapax::worker
