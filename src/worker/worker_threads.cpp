#include "worker/worker_threads.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "kafka/log_ends.hpp"
#include "observe/log.hpp"
#include "worker/kafka_health.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;

// The time for the ends of logs, for which the thread of retention asks.
constexpr milliseconds kEndsTimeout{2000};

}  // namespace

WorkerThreads::WorkerThreads(const config::Config& config, const std::vector<flow::Route>& routes,
                             LaneSetup& setup, observe::Health& health)
    : config_(config), routes_(routes), setup_(setup) {
  for (std::size_t lane = 0; lane < config.worker.lanes; ++lane)
    handlers_.push_back(make_handlers(health));
  replay_handlers_ = make_handlers(health);
  for (std::size_t i = 0; i < routes.size(); ++i) call_handlers_.push_back(make_callers(i, health));
}

// One for each call at once; none of a route that does not call.
OutsideCalls::Handlers WorkerThreads::make_callers(std::size_t route,
                                                   observe::Health& health) const {
  OutsideCalls::Handlers handlers;
  const auto& outside = routes_[route].outside;
  for (std::size_t n = 0; outside && n < outside->concurrency; ++n) {
    handlers.push_back(flow::start_outside_handler(routes_[route], config_.routes[route].options));
    health.poll_turned();
  }
  return handlers;
}

WorkerThreads::Handlers WorkerThreads::make_handlers(observe::Health& health) const {
  Handlers handlers;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    handlers.push_back(flow::start_handler(routes_[i], config_.routes[i].options));
    health.poll_turned();  // there may be many, and each takes a while
  }
  return handlers;
}

void WorkerThreads::start(Keeper& keeper) {
  std::random_device random;
  for (auto& handlers : handlers_)
    lanes_.push_back(std::make_unique<Lane>(setup_, std::move(handlers), random()));
  setup_.metrics.lanes(lanes_.size());
  keeper.start();
  retention_ = std::make_unique<Retention>(RetentionSetup{
      setup_.connect, setup_.group, setup_.worker_name, [&] { return keeper.held_logs(); },
      [&, ends = std::make_shared<kafka::LogEnds>([&] {
            return current_properties(config_.kafka);
          })](const auto& partitions) { return ends->ask(partitions, kEndsTimeout); },
      setup_.metrics});
  if (std::ranges::any_of(routes_, [](const auto& route) { return route.outside.has_value(); }))
    calls_ = std::make_unique<OutsideCalls>(setup_, routes_, std::move(call_handlers_), random());
  replays_ = std::make_unique<Replays>(setup_, routes_, std::move(replay_handlers_), calls_.get(),
                                       random());
}

void WorkerThreads::tell_running() const {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const auto running = lanes_[lane]->running();
    if (!running) continue;
    const auto seconds = running->since ? (Clock::now() - *running->since) / std::chrono::seconds(1)
                                        : std::int64_t{0};
    observe::log::warning("still_runs",
                          {{"lane", lane},
                           {"handler", running->handler},
                           {"topic", running->source.topic},
                           {"partition", running->source.partition},
                           {"offset", running->source.offset},
                           {"seconds", seconds}},
                          running->since ? "its handler has not come back"
                                         : "its handler does not run; it waits for PostgreSQL");
  }
  if (calls_) calls_->tell_running();
}

bool WorkerThreads::handlers_run() const {
  return calls_run() || std::ranges::any_of(lanes_, [](const auto& lane) {
           const auto running = lane->running();
           return running && running->since;
         });
}

void WorkerThreads::wind_down() {
  replays_->stop();
  if (calls_) calls_->stop();
}

void WorkerThreads::end() {
  setup_.dispatcher.stop();
  if (calls_) calls_->give_up();
  replays_.reset();
  calls_.reset();
  for (const auto& lane : lanes_) lane->stop();  // all, before the first is waited for
  lanes_.clear();
  retention_.reset();
}

}  // namespace hapax::worker
