#include "worker/worker.hpp"

#include <algorithm>
#include <random>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "worker/connect_options.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kPollTimeout{100};
constexpr milliseconds kTurn{1};  // between two looks at everything that is not a message
constexpr milliseconds kPollTimeoutPaused{10};  // a paused partition waits for room, not for Kafka
constexpr milliseconds kTopicTimeout{5000};
// For the ends of logs, asked by the thread of retention.
constexpr milliseconds kEndsTimeout{2000};

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

}  // namespace

Worker::Worker(const config::Config& config, std::vector<flow::Route> routes,
               observe::Health& health, observe::Metrics& metrics,
               std::function<void(const Message&)> settled)
    : config_(config),
      group_(config.kafka.properties.at("group.id")),
      routes_(as_durable(std::move(routes), config.worker.durability)),
      health_(health),
      metrics_(metrics),
      topics_(topics_of(routes_)),
      postgres_(health, metrics, std::max(kRefusalsEnd, 2 * config.worker.checkpoint_interval)),
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
                  config.log.error_text},
      handlers_(make_handlers_of_lanes()),
      replay_handlers_(make_handlers()),
      consumer_(config.kafka.properties, *this),
      kafka_health_(config.kafka, routes_.front().topic, consumer_, health),
      keeper_(keeper_setup(), consumer_, notices_, postgres_, metrics),
      caution_(dispatcher_, config.worker.lanes, config.worker.queue.messages),
      fetches_(partitions_, consumer_),
      intake_(config.worker, partitions_, dispatcher_, fetches_, lane_setup_.route_metrics,
              random_hash()),
      assignment_(routes_, partitions_, dispatcher_, fetches_, keeper_, health, metrics),
      partition_errors_(config.worker.name,
                        config.kafka.out_of_range == config::OutOfRange::earliest, partitions_,
                        assignment_, fetches_),
      offset_commits_(partitions_, consumer_, keeper_, metrics),
      membership_(consumer_),
      watchdog_(config.worker.handler_timeout, lane_setup_.connect, postgres_),
      partition_reports_(partitions_, assignment_, dispatcher_, consumer_, health, metrics) {}

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

Worker::Handlers Worker::make_handlers() const {
  Handlers handlers;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    handlers.push_back(flow::start_handler(routes_[i], config_.routes[i].options));
    health_.poll_turned();  // there are many of them, one after the other
  }
  return handlers;
}

std::vector<Worker::Handlers> Worker::make_handlers_of_lanes() const {
  std::vector<Handlers> of_lanes;
  for (std::size_t lane = 0; lane < config_.worker.lanes; ++lane)
    of_lanes.push_back(make_handlers());
  return of_lanes;
}

Worker::~Worker() { end_threads(); }

void Worker::end_threads() {
  dispatcher_.stop();
  publisher_.reset();
  replays_.reset();
  for (const auto& lane : lanes_) lane->stop();  // all, before the first is waited for
  lanes_.clear();
  retention_.reset();
  keeper_.stop();
}

std::optional<std::string> Worker::await_topics(const StopSignal& stop) {
  std::string said;
  while (stop == 0) {
    kafka_health_.renew_credentials();
    std::string missing;
    try {
      for (const flow::Route& route : routes_)
        if (consumer_.partition_count(route.topic, kTopicTimeout) == 0)
          missing += (missing.empty() ? "Kafka has no topic \"" : "\", \"") + route.topic;
      if (missing.empty()) return std::nullopt;
      missing += "\"";
    } catch (const std::exception& error) {
      (void)consumer_.poll(milliseconds(0));  // serves on_client_error, which knows the cause
      kafka_health_.does_not_answer();
      const std::string& cause = kafka_health_.last_error();
      missing = "Kafka does not answer: " + (cause.empty() ? error.what() : cause);
    }
    if (!config_.kafka.wait_for_topics) return missing;
    if (missing != said)
      log::warning("waiting_for_kafka", {{"error", missing}}, "waiting for Kafka");
    said = missing;
    health_.poll_turned();  // a restart would not help
    (void)consumer_.poll(kPollTimeout);
  }
  return std::nullopt;
}

Ended Worker::run(const StopSignal& stop) {
  if (stop != 0) return Ended::stopped;  // before it has joined
  std::random_device random;
  for (auto& handlers : handlers_)
    lanes_.push_back(std::make_unique<Lane>(lane_setup_, std::move(handlers), random()));
  metrics_.lanes(lanes_.size());
  keeper_.start();
  retention_ = std::make_unique<Retention>(RetentionSetup{
      lane_setup_.connect, group_, config_.worker.name, [this] { return keeper_.held_epochs(); },
      [this](const auto& partitions) { return consumer_.ends(partitions, kEndsTimeout); }});
  replays_ = std::make_unique<Replays>(lane_setup_, routes_, std::move(replay_handlers_), random());
  publish_dead_letters();
  consumer_.subscribe(topics_);
  membership_.waits();
  health_.started();

  auto next_turn = Clock::now();
  while (stop == 0 && !kafka_health_.is_fatal() && !watchdog_.hangs()) {
    serve(consumer_.poll(fetches_.paused() > 0 ? kPollTimeoutPaused : kPollTimeout));
    if (const auto now = Clock::now(); now >= next_turn) {
      next_turn = now + kTurn;
      serve_notices();
      intake_.turn();
      if (offset_commits_.may_send()) {
        serve_posted();  // what the keeper's look at the logs has found
        offset_commits_.send();
      }
      caution_.end();
      report();
      health_.poll_turned();
    }
  }
  if (watchdog_.hangs()) return Ended::handler_hangs;
  const bool clean = leave();
  if (kafka_health_.is_fatal()) return Ended::fatal;
  if (handlers_run_) return Ended::handlers_run;
  return clean ? Ended::stopped : Ended::gave_up_waiting;
}

void Worker::publish_dead_letters() {
  DeadLetterPublisherSetup setup{group_, config_.worker.name, lane_setup_.connect,
                                 [this] { return current_properties(config_.kafka); }};
  for (const config::Route& route : config_.routes)
    if (!route.dead_letter_topic.empty())
      setup.topics.emplace(route.topic, route.dead_letter_topic);
  if (!setup.topics.empty())
    publisher_ = std::make_unique<DeadLetterPublisher>(std::move(setup), postgres_, metrics_);
}

void Worker::serve(kafka::Event event) {
  if (auto* record = std::get_if<std::unique_ptr<kafka::Record>>(&event)) {
    receive(std::move(*record));
  } else if (const auto* end = std::get_if<kafka::EndOfPartition>(&event)) {
    serve(*end);
  } else if (const auto* partition_error = std::get_if<kafka::PartitionError>(&event)) {
    if (partition_error->kind == kafka::PartitionError::Kind::refused &&
        partition_error->partition.first.empty())
      kafka_health_.refused_by_group(partition_error->text);
    else
      partition_errors_.serve(*partition_error);
  } else if (const auto* client_error = std::get_if<kafka::ClientError>(&event)) {
    kafka_health_.failed(*client_error);
  }
}

void Worker::receive(std::unique_ptr<kafka::Record> record) {
  const Message& message = record->message();
  // Null if it was revoked or halted meanwhile, or fetched before the partition starts again.
  const auto partition = find_running(partitions_, std::pair(message.topic(), message.partition()));
  if (!partition || partition_errors_.log_was_rewritten(partition, *record)) return;
  intake_.receive(partition, std::move(record));
}

void Worker::serve(const kafka::EndOfPartition& end) {
  if (const auto partition = find_running(partitions_, end.partition))
    intake_.reached_end(*partition, end.offset);
}

void Worker::serve_posted() {
  for (const Notice& notice : notices_.take())
    std::visit([this](const auto& what) { serve(what); }, notice);
}

void Worker::serve_notices() {
  serve_posted();
  membership_.turn();
  caution_.begin();
  fetches_.turn();
}

void Worker::serve(const Started& started) {
  const TopicPartition& id = started.partition->id();
  if (!is_current(partitions_, started.partition)) return;
  log::info("partition_started",
            {{"topic", id.first},
             {"partition", id.second},
             {"offset", started.partition->beginning().offset},
             {"epoch", started.partition->beginning().epoch}},
            "agreed on the start");
  started.partition->polling.started = true;
  lane_setup_.breakers[started.partition->route_index()].close();
  caution_.started(started.partition);
  fetches_.started(id);
}

// Its next run starts where the checkpoints are, and finds that the topic is another one.
void Worker::serve(const ClientBroken& broken) {
  kafka_health_.failed({true, "topic_recreated",
                        "topic " + broken.topic + " was made again, and librdkafka " +
                            kafka::Consumer::version() +
                            " damages its memory then: the process ends, to be started again"});
}

// What metrics, readiness and the watchdogs are told, twice a second.
void Worker::report() {
  const auto now = Clock::now();
  if (now - last_report_ < kReportInterval) return;
  last_report_ = now;
  watchdog_.look(lanes_, *replays_, keeper_.silence());
  membership_.tell_if_slow();
  partition_reports_.write(lanes_);
  if (keeper_.silence() > kSilence)
    postgres_.went_down("writing checkpoints", "", "it does not answer");
  kafka_health_.turn();
}

void Worker::on_committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                          const std::string& error) {
  offset_commits_.answered(commits, result, error);
  if (result == kafka::CommitResult::fatal) kafka_health_.failed({true, "commit", error});
}

void Worker::on_client_error(const kafka::ClientError& error) { kafka_health_.failed(error); }

}  // namespace hapax::worker
