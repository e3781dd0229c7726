#include "worker/worker.hpp"

#include <algorithm>
#include <random>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "worker/connect_options.hpp"
#include "worker/log_halt.hpp"

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

// So long a partition that another worker has taken is left to the group to sort out.
constexpr milliseconds kTakeAgainFromAnother{3000};

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

std::vector<observe::RouteMetrics> metrics_of_routes(const std::vector<flow::Route>& routes,
                                                     observe::Metrics& metrics) {
  std::vector<observe::RouteMetrics> of_routes;
  for (const flow::Route& route : routes) {
    of_routes.push_back(metrics.route(route.topic, route.handler.name));
    metrics.handler(route.topic, route.handler.name, route.handler.version);
  }
  return of_routes;
}

std::deque<flow::Breaker> breakers_of_routes(const std::vector<flow::Route>& routes) {
  std::deque<flow::Breaker> breakers;
  for (const flow::Route& route : routes) breakers.emplace_back(route.breaker);
  return breakers;
}

// Each with its index. One line in the log for each.
std::map<std::string, std::size_t> index_of_topics(const std::vector<flow::Route>& routes) {
  std::map<std::string, std::size_t> index;
  for (const flow::Route& route : routes) {
    index.emplace(route.topic, index.size());
    log::info("route",
              {{"topic", route.topic},
               {"handler", route.handler.name},
               {"version", route.handler.version}},
              "messages of this topic go to this handler");
  }
  return index;
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
      route_index_(index_of_topics(routes_)),
      handlers_(make_handlers_of_lanes()),
      replay_handlers_(make_handlers()),
      consumer_(config.kafka.properties, *this),
      kafka_health_(config.kafka, routes_.front().topic, consumer_, health),
      keeper_(keeper_setup(), consumer_, notices_, postgres_, metrics),
      caution_(dispatcher_, config.worker.lanes, config.worker.queue.messages),
      fetches_(partitions_, consumer_),
      intake_(config.worker, partitions_, dispatcher_, fetches_, lane_setup_.route_metrics,
              random_hash()),
      offset_commits_(partitions_, consumer_, keeper_, metrics) {}

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
  waits_for_group_ = Clock::now();
  health_.started();

  auto next_turn = Clock::now();
  while (stop == 0 && !kafka_health_.is_fatal() && !hangs_) {
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
  if (hangs_) return Ended::handler_hangs;
  const bool clean = leave();
  if (kafka_health_.is_fatal()) return Ended::fatal;
  if (handlers_run_) return Ended::handlers_run;
  return clean ? Ended::stopped : Ended::gave_up_waiting;
}

void Worker::publish_dead_letters() {
  DeadLetterPublisherSetup setup{group_,
                                 config_.worker.name,
                                 lane_setup_.connect,
                                 [this] { return current_properties(config_.kafka); },
                                 {}};
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
    serve(*partition_error);
  } else if (const auto* client_error = std::get_if<kafka::ClientError>(&event)) {
    kafka_health_.failed(*client_error);
  }
}

void Worker::receive(std::unique_ptr<kafka::Record> record) {
  const Message& message = record->message();
  // Null if it was revoked or halted meanwhile, or fetched before the partition starts again.
  const auto partition = find_running(partitions_, std::pair(message.topic(), message.partition()));
  if (!partition || log_was_rewritten(partition, *record)) return;
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
  join_anew();
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

void Worker::stop_partition(const std::shared_ptr<Partition>& partition) {
  dispatcher_.drop(*partition);
  fetches_.stop(*partition);
  remember_last(*partition);
  partitions_.erase(partition->id());
}

void Worker::serve(const HaltWanted& wanted) {
  std::vector<std::shared_ptr<Partition>> stopping;
  for (const auto& [id, partition] : partitions_)
    if (partition == wanted.partition || (wanted.halt.whole_route && id.first == wanted.halt.topic))
      stopping.push_back(partition);
  if (std::ranges::find(stopping, wanted.partition) == stopping.end()) {
    if (!wanted.halt.whole_route) return;  // stopped already
    // A route's halt stands even where the partition is another's by now, or another assignment's.
    if (!wanted.recorded) keeper_.halted(wanted.halt, false);
    if (stopping.empty()) return;
  }
  log_halt(wanted);
  for (const auto& partition : stopping) {
    store::Halt halt = wanted.halt;
    halt.partition = partition->id().second;
    const bool recorded = wanted.recorded || partition != wanted.partition;
    if (!recorded) metrics_.halted(halt.reason);
    halted_[partition->id()] = halt;
    stop_partition(partition);
    keeper_.halted(halt, recorded);
  }
}

void Worker::serve(const HaltEnded& ended) {
  if (halted_.erase(ended.partition) == 0) return;
  log::info("resumed", {{"topic", ended.partition.first}, {"partition", ended.partition.second}},
            "the halt was ended by an operator");
  take_again(ended.partition, {});
}

void Worker::serve(const Fenced& fenced) {
  const TopicPartition id = fenced.partition->id();
  const auto found = partitions_.find(id);
  if (found == partitions_.end() || found->second != fenced.partition) return;
  log::warning("fenced",
               {{"topic", id.first}, {"partition", id.second}, {"by_another", fenced.by_another}},
               "the checkpoint could not be written: the partition was taken or moved, or "
               "PostgreSQL lost its tail; starting again from the checkpoint");
  stop_partition(fenced.partition);
  take_again(id, fenced.by_another ? kTakeAgainFromAnother : milliseconds(0));
}

std::shared_ptr<Partition> Worker::make_partition(const TopicPartition& id,
                                                  std::size_t route) const {
  const auto partition = std::make_shared<Partition>(id, routes_[route], route);
  if (const auto last = last_read_.find(id); last != last_read_.end())
    partition->read_before = last->second;
  return partition;
}

void Worker::remember_last(const Partition& partition) {
  if (partition.polling.last) last_read_.insert_or_assign(partition.id(), *partition.polling.last);
}

void Worker::take_again(const TopicPartition& id, milliseconds after, std::int64_t reached) {
  const auto partition = make_partition(id, route_index_.at(id.first));
  partition->reached = reached;
  partitions_[id] = partition;
  keeper_.acquire({partition}, after);
}

}  // namespace hapax::worker
