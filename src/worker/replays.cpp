#include "worker/replays.hpp"

#include "observe/log.hpp"
#include "store/advice.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using flow::Replayed;

constexpr std::chrono::milliseconds kAskAgain{1000};
constexpr std::chrono::milliseconds kCountAgain{5000};

std::vector<std::pair<const flow::Route*, Handler*>> pairs_of(
    const std::vector<flow::Route>& routes, const std::vector<std::unique_ptr<Handler>>& handlers) {
  std::vector<std::pair<const flow::Route*, Handler*>> pairs;
  for (std::size_t i = 0; i < routes.size(); ++i) pairs.emplace_back(&routes[i], handlers[i].get());
  return pairs;
}

}  // namespace

Replays::Replays(const LaneSetup& setup, const std::vector<flow::Route>& routes,
                 std::vector<std::unique_ptr<Handler>> handlers, OutsideCalls* calls,
                 std::uint64_t seed)
    : postgres_(setup.postgres),
      metrics_(setup.metrics),
      handlers_(std::move(handlers)),
      replayer_({.connect = setup.connect,
                 .group = setup.group,
                 .worker = setup.worker_name,
                 .routes = pairs_of(routes, handlers_),
                 .seed = seed,
                 .running = [this](const flow::Route* route,
                                   const store::Source& source) { set_running(route, source); },
                 .outside = calls == nullptr ? std::nullopt : std::optional(calls_through(*calls)),
                 .tracer = setup.tracer,
                 .log_error_text = setup.log_error_text}),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

flow::Replayer::Outside Replays::calls_through(OutsideCalls& calls) {
  return {.holder = calls.holder(),
          .make_call =
              [&calls](const flow::Route& route, const store::Source& source,
                       outside::CallToMake& call, const std::function<void()>& meanwhile) {
                calls.in_flight().make_for_replay(route, source, call, meanwhile);
              },
          .wait =
              [this](std::chrono::milliseconds time) {
                wait_unless_stopped(gives_up_.get_token(), time);
                return !gives_up_.stop_requested();
              }};
}

void Replays::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool down = postgres_.is_down();
    const bool more = !down && turn();
    if (!down) count();
    if (!more) wait_unless_stopped(stop, kAskAgain);
  }
  const sync::Lock lock(mutex_);
  ended_ = true;
  ended_there_.notify_all();
}

// False when there is nothing to do at once.
bool Replays::turn() {
  using Result = Replayed::Result;
  const Replayed replayed = replayer_.run_next();
  if (replayed.result == Result::outage) {
    // The lanes log an outage. This thread logs only what PostgreSQL refuses.
    if (!store::may_be_a_lost_session(replayed.sqlstate) && replayed.detail != said_)
      observe::log::warning("replays_delayed",
                            {{"sqlstate", replayed.sqlstate}, {"error", replayed.detail}},
                            "PostgreSQL refuses to tell which replays are wanted" +
                                store::advice_on(replayed.sqlstate) + "; trying again");
    said_ = replayed.detail;
    return false;
  }
  said_.clear();
  if (replayed.result == Result::nothing) return false;
  // The registry logs its outage once. Without a pause all open replays would be claimed in turn.
  if (replayed.result == Result::later && replayed.awaits_schema) return false;
  if (replayed.result == Result::completed) metrics_.replay_ended(observe::ReplayEnd::completed);
  if (replayed.result == Result::refused) metrics_.replay_ended(observe::ReplayEnd::refused);
  if (replayed.result == Result::failed) metrics_.replay_ended(observe::ReplayEnd::failed);
  log(replayed);
  return true;
}

void Replays::count() {
  if (Clock::now() < count_again_) return;
  count_again_ = Clock::now() + kCountAgain;
  if (const auto open = replayer_.count_open()) metrics_.replays_open(*open);
}

// Never the detail: it may quote the message. `hapax dead show` has it.
void Replays::log(const Replayed& replayed) {
  const std::initializer_list<observe::log::Field> fields = {
      {"replay", replayed.replay},     {"dead_letter", replayed.dead_letter},
      {"topic", replayed.topic},       {"outcome", name_of(replayed.result)},
      {"sqlstate", replayed.sqlstate}, {"trace_id", replayed.trace_id}};
  if (replayed.result == Replayed::Result::completed) {
    observe::log::info("replay", fields, "replayed a dead letter");
  } else if (replayed.halted) {
    observe::log::error("replay", fields,
                        "the handler ended the transaction of a replay; its route is halted, see "
                        "`hapax status`");
  } else {
    observe::log::warning("replay", fields,
                          "a replay did not complete; `hapax dead show` tells why");
  }
}

bool Replays::wait_idle(Clock::time_point until) {
  sync::Lock lock(mutex_);
  return ended_there_.wait_until(lock.waitable(), until,
                                 [this]() HAPAX_REQUIRES(mutex_) { return ended_; });
}

void Replays::set_running(const flow::Route* route, const store::Source& source) {
  const sync::Lock lock(mutex_);
  running_.reset();
  if (route != nullptr) running_ = Lane::Running{source, route->handler.name, Clock::now()};
}

std::optional<Lane::Running> Replays::running() const {
  const sync::Lock lock(mutex_);
  return running_;
}

}  // namespace hapax::worker
