#include "worker/worker.hpp"

#include <algorithm>
#include <random>

#include "observe/log.hpp"
#include "worker/await_topics.hpp"
#include "worker/connect_options.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kPollTimeout{100};
constexpr milliseconds kTurn{1};  // between two looks at everything that is not a message
// If a partition is paused, it waits for room, not for Kafka.
constexpr milliseconds kPollTimeoutPaused{10};
// Longer than a lane waits between two tries, and twice a checkpoint's interval.
constexpr milliseconds kRefusalsEnd{5000};

constexpr milliseconds kReportInterval{500};
constexpr std::chrono::seconds kSilence{15};  // of PostgreSQL: several hosts may be tried

OrderHash random_hash() {
  std::random_device random;
  const auto word = [&] { return (static_cast<std::uint64_t>(random()) << 32U) | random(); };
  const std::uint64_t first = word();
  return {first, word()};
}

std::vector<flow::Route> as_durable(std::vector<flow::Route> routes, config::Durability wanted) {
  for (flow::Route& route : routes)
    route.durability = wanted == config::Durability::checkpoint ? store::Durability::checkpoint
                                                                : store::Durability::synchronous;
  return routes;
}

std::vector<std::string> topics_of(const std::vector<flow::Route>& routes) {
  std::vector<std::string> topics;
  for (const flow::Route& route : routes) topics.push_back(route.topic);
  return topics;
}

// One line in the log for each.
std::vector<observe::RouteMetrics> metrics_of_routes(const std::vector<flow::Route>& routes,
                                                     observe::Metrics& metrics) {
  std::vector<observe::RouteMetrics> of_routes;
  for (const flow::Route& route : routes) {
    of_routes.push_back(metrics.route(route.topic, route.handler.name));
    metrics.handler(route.topic, route.handler.name, route.handler.version);
    log::info("route",
              {{"topic", route.topic},
               {"handler", route.handler.name},
               {"version", route.handler.version}},
              "messages of this topic go to this handler");
  }
  return of_routes;
}

std::deque<flow::Breaker> breakers_of_routes(const std::vector<flow::Route>& routes) {
  std::deque<flow::Breaker> breakers;
  for (const flow::Route& route : routes) breakers.emplace_back(route.breaker);
  return breakers;
}

// Nothing if traces are off.
std::optional<traces::Tracer> tracer_of(const config::Config& config, observe::Metrics& metrics) {
  if (!config.traces.endpoint) return std::nullopt;
  const auto client = config.kafka.properties.find("client.id");
  return std::optional<traces::Tracer>(
      std::in_place,
      traces::Tracer::Setup{
          .target = *config.traces.endpoint,
          .resource = {.group = config.kafka.properties.at("group.id"),
                       .instance = config.worker.name,
                       .client = client == config.kafka.properties.end() ? "" : client->second},
          .parent = config.traces.parent == config::SpanParent::producer ? traces::Parent::producer
                                                                         : traces::Parent::link,
          .ratio = config.traces.ratio},
      metrics);
}

}  // namespace

Worker::Worker(const config::Config& config, std::vector<flow::Route> routes,
               observe::Health& health, observe::Metrics& metrics,
               std::function<void(const Message&)> settled)
    : config_(config),
      group_(config.kafka.properties.at("group.id")),
      routes_(as_durable(std::move(routes), config.worker.durability)),
      health_(health),
      topics_(topics_of(routes_)),
      postgres_(health, metrics, std::max(kRefusalsEnd, 2 * config.worker.checkpoint_interval)),
      tracer_(tracer_of(config, metrics)),
      lane_setup_{group_,
                  config.worker.name,
                  [&config] { return store::Session(connect_options(config)); },
                  dispatcher_,
                  notices_,
                  postgres_,
                  metrics,
                  metrics_of_routes(routes_, metrics),
                  breakers_of_routes(routes_),
                  std::move(settled),
                  config.log.error_text,
                  tracer_ ? &*tracer_ : nullptr},
      threads_(config, routes_, lane_setup_, health),
      consumer_(config.kafka.properties, *this),
      kafka_health_(config.kafka, routes_.front().topic, consumer_, health),
      keeper_(keeper_setup(), consumer_, notices_, postgres_, metrics),
      poll_(
          {.settings = config.worker,
           .earliest_when_out_of_range = config.kafka.out_of_range == config::OutOfRange::earliest,
           .routes = routes_,
           .lanes = lane_setup_,
           .consumer = consumer_,
           .keeper = keeper_,
           .kafka_health = kafka_health_,
           .health = health,
           .tell_running = [this] { threads_.tell_running(); },
           .order_hash = random_hash()}),
      shutdown_(config.worker, lane_setup_, poll_, threads_, keeper_, consumer_, health),
      watchdog_(config.worker.handler_timeout, lane_setup_.connect, postgres_) {}

KeeperSetup Worker::keeper_setup() const {
  const bool is_static = config_.kafka.properties.contains("group.instance.id");
  return {.group = group_,
          .worker_name = config_.worker.name,
          .connect = lane_setup_.connect,
          .checkpoint_interval = config_.worker.checkpoint_interval,
          .initial_latest = config_.kafka.initial == config::Initial::latest,
          .earliest_when_out_of_range = config_.kafka.out_of_range == config::OutOfRange::earliest,
          .topics_of_static_member = is_static ? topics_ : std::vector<std::string>()};
}

Worker::~Worker() { shutdown_.end_threads(); }

std::optional<std::string> Worker::await_topics(const StopSignal& stop) {
  return worker::await_topics({.topics = topics_,
                               .waits = config_.kafka.wait_for_topics,
                               .consumer = consumer_,
                               .kafka_health = kafka_health_,
                               .health = health_},
                              stop);
}

Ended Worker::run(const StopSignal& stop) {
  if (stop != 0) {
    log::info("stopped", {{"left_group", false}}, "stopped before it had joined the group");
    return Ended::stopped;
  }
  threads_.start(keeper_);
  consumer_.subscribe(topics_);
  poll_.subscribed();
  health_.started();

  auto next_turn = Clock::now();
  while (stop == 0 && !kafka_health_.is_fatal() && !watchdog_.hangs() && !threads_.call_hangs()) {
    poll_.serve(consumer_.poll(poll_.any_paused() ? kPollTimeoutPaused : kPollTimeout));
    if (const auto now = Clock::now(); now >= next_turn) {
      next_turn = now + kTurn;
      poll_.turn();
      report();
      health_.poll_turned();
    }
  }
  if (watchdog_.hangs()) return Ended::handler_hangs;
  const Ended ended = shutdown_.leave();  // if a call hangs, the others may end
  if (ended == Ended::handler_hangs) return ended;
  return kafka_health_.is_fatal() ? Ended::fatal : ended;
}

// Reports to metrics, readiness and the watchdogs, twice a second.
void Worker::report() {
  const auto now = Clock::now();
  if (now - last_report_ < kReportInterval) return;
  last_report_ = now;
  watchdog_.look(threads_.lanes(), threads_.replays(), keeper_.silence());
  poll_.report(threads_.lanes());
  if (keeper_.silence() > kSilence)
    postgres_.went_down("writing checkpoints", "", "it does not answer");
  kafka_health_.turn();
}

}  // namespace hapax::worker
