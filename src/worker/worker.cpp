#include "worker/worker.hpp"

#include <random>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "store/dead_letter.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kPollTimeout{100};
// Starts of a partition since its checkpoint last moved; more of them, and something kills them.
constexpr int kTrustedRuns = 1;

constexpr milliseconds kTurn{1};  // between two looks at everything that is not a message
constexpr milliseconds kPollTimeoutPaused{10};  // a paused partition waits for room, not for Kafka
constexpr milliseconds kTopicTimeout{5000};
constexpr milliseconds kReportInterval{500};
constexpr milliseconds kCommitAgain{500};  // after one that did not get through
constexpr milliseconds kProbeTimeout{50};  // of the poll thread's time, while it has nothing to do

// So long a partition that another worker has taken is left to the group to sort out.
constexpr milliseconds kTakeAgainFromAnother{3000};

}  // namespace

store::ConnectOptions connect_options(const config::Config& config) {
  store::ConnectOptions options;
  options.url = config.postgres.url;
  options.application_name = "hapax " + config.worker.name;
  options.connect_timeout = config.postgres.connect_timeout;
  options.lock_timeout = config.postgres.lock_timeout;
  options.statement_timeout = config.postgres.statement_timeout;
  options.idle_in_transaction_timeout = config.postgres.idle_in_transaction_timeout;
  return options;
}

Worker::Worker(const config::Config& config, std::vector<flow::Route> routes,
               observe::Health& health, observe::Metrics& metrics)
    : config_(config),
      group_(config.kafka.properties.at("group.id")),
      routes_(std::move(routes)),
      health_(health),
      metrics_(metrics),
      postgres_(health, metrics),
      lane_setup_{group_,
                  config.worker.name,
                  [options = connect_options(config)] { return store::Session(options); },
                  dispatcher_,
                  notices_,
                  postgres_,
                  metrics,
                  {},
                  {}} {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    route_index_[routes_[i].topic] = i;
    lane_setup_.breakers.emplace_back(routes_[i].breaker);
    route_metrics_.push_back(metrics.route(routes_[i].topic, routes_[i].handler.name));
  }
  lane_setup_.route_metrics = route_metrics_;
  for (std::size_t lane = 0; lane < config.worker.lanes; ++lane) {
    auto& instances = handlers_.emplace_back();
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      instances.push_back(routes_[i].handler.make());
      instances.back()->on_start({routes_[i].topic, config.routes[i].options});
    }
  }
  consumer_ = std::make_unique<kafka::Consumer>(config.kafka.properties, *this);
}

Worker::~Worker() {
  dispatcher_.stop();
  lanes_.clear();
  keeper_.reset();
}

std::optional<std::string> Worker::await_topics(const StopSignal& stop) {
  std::string said;
  while (stop == 0) {
    std::string missing;
    try {
      for (const flow::Route& route : routes_)
        if (consumer_->partition_count(route.topic, kTopicTimeout) == 0)
          missing += (missing.empty() ? "Kafka has no topic \"" : "\", \"") + route.topic;
      if (missing.empty()) return std::nullopt;
      missing += "\"";
    } catch (const std::exception& error) {
      missing = std::string("Kafka does not answer: ") + error.what();
    }
    if (!config_.kafka.wait_for_topics) return missing;
    if (missing != said) log::warning("waiting_for_kafka", {{"error", missing}}, "waiting for Kafka");
    said = missing;
    (void)consumer_->poll(kPollTimeout);
  }
  return std::nullopt;
}

Ended Worker::run(const StopSignal& stop) {
  std::random_device random;
  for (auto& handlers : handlers_)
    lanes_.push_back(std::make_unique<Lane>(lane_setup_, std::move(handlers), random()));
  metrics_.lanes(lanes_.size());
  keeper_ = std::make_unique<Keeper>(
      KeeperSetup{group_, config_.worker.name, lane_setup_.connect,
                  config_.worker.checkpoint_interval,
                  config_.kafka.initial == config::Initial::latest,
                  config_.kafka.out_of_range == config::OutOfRange::earliest},
      *consumer_, notices_, postgres_, metrics_);
  retention_ = std::make_unique<Retention>(lane_setup_.connect, config_.worker.name);
  std::vector<std::string> topics;
  for (const flow::Route& route : routes_) topics.push_back(route.topic);
  consumer_->subscribe(topics);
  health_.started();

  auto next_turn = Clock::now();
  while (stop == 0 && !fatal_ && !hangs_) {
    serve(consumer_->poll(paused_ > 0 ? kPollTimeoutPaused : kPollTimeout));
    if (const auto now = Clock::now(); now >= next_turn) {
      next_turn = now + kTurn;
      serve_notices();
      resume_paused();
      commit_offsets();
      end_caution();
      report();
      health_.poll_turned();
    }
  }
  if (hangs_) return Ended::handler_hangs;
  const bool clean = leave();
  if (fatal_) return Ended::fatal;
  return clean ? Ended::stopped : Ended::gave_up_waiting;
}

void Worker::serve(kafka::Event event) {
  if (auto* record = std::get_if<std::unique_ptr<kafka::Record>>(&event)) {
    receive(std::move(*record));
  } else if (const auto* end = std::get_if<kafka::EndOfPartition>(&event)) {
    serve(*end);
  } else if (const auto* partition_error = std::get_if<kafka::PartitionError>(&event)) {
    serve(*partition_error);
  } else if (const auto* client_error = std::get_if<kafka::ClientError>(&event)) {
    on_client_error(*client_error);
  }
}

void Worker::receive(std::unique_ptr<kafka::Record> record) {
  const Message& message = record->message();
  const auto found = partitions_.find(std::pair(message.topic(), message.partition()));
  if (found == partitions_.end() || found->second->over()) return;  // revoked or halted meanwhile
  const std::shared_ptr<Partition>& partition = found->second;
  if (!partition->receive(message.offset(), record->bytes())) return;
  flow::crash_point("received");
  partition->polling.at_end = false;
  partition->polling.leader_epoch = message.leader_epoch();
  route_metrics_[partition->route_index()].received(record->bytes());

  Item item;
  milliseconds wait{0};
  const auto& attempts = partition->beginning().ahead.attempts;
  if (const auto prior = attempts.find(message.offset()); prior != attempts.end()) {
    item.attempts = prior->second.count;
    wait = milliseconds(prior->second.wait_ms);
  }
  const std::uint64_t order = order_key(message);
  item.record = std::move(record);
  dispatcher_.add(partition, order, std::move(item), wait);
  bound_queue(*partition);
}

std::uint64_t Worker::order_key(const Message& message) {
  switch (config_.worker.ordering) {
    case config::Ordering::partition:
      return 0;
    case config::Ordering::key:
      // Two keys of one hash only wait for each other. A null key orders nothing.
      if (message.key()) return std::hash<std::string_view>()(*message.key());
      [[fallthrough]];
    case config::Ordering::none:
      break;
  }
  return ++unordered_ * 0x9E3779B97F4A7C15ULL;
}

// One partition's share of the worker's queue; at least one message always fits.
void Worker::bound_queue(Partition& partition) {
  const Partition::Progress progress = partition.progress();
  const std::size_t share = std::max<std::size_t>(1, partitions_.size());
  if (partition.polling.paused || (progress.span < config_.worker.queue.messages / share &&
                                   progress.bytes < config_.worker.queue.bytes / share))
    return;
  consumer_->pause(partition.id());
  partition.polling.paused = true;
  ++paused_;
}

// With hysteresis: a pause drops what librdkafka has fetched ahead.
void Worker::resume_paused() {
  const std::size_t share = 2 * std::max<std::size_t>(1, partitions_.size());
  for (const auto& [id, partition] : partitions_) {
    if (!partition->polling.paused) continue;
    const Partition::Progress progress = partition->progress();
    if (progress.span > config_.worker.queue.messages / share ||
        progress.bytes > config_.worker.queue.bytes / share)
      continue;
    unpause(*partition);
  }
}

// librdkafka remembers a pause beyond the assignment, and must not be resumed twice.
void Worker::unpause(Partition& partition) {
  if (!partition.polling.paused) return;
  consumer_->resume(partition.id());
  partition.polling.paused = false;
  --paused_;
}

void Worker::serve(const kafka::EndOfPartition& end) {
  const auto found = partitions_.find(end.partition);
  if (found == partitions_.end() || found->second->over()) return;
  found->second->pass(end.offset);
  found->second->polling.at_end = true;
}

// An error that stands at an offset pins the watermark there; librdkafka would go on behind it.
void Worker::serve(const kafka::PartitionError& error) {
  using Kind = kafka::PartitionError::Kind;
  const auto found = partitions_.find(error.partition);
  if (error.kind == Kind::no_topic || found == partitions_.end()) {
    log::warning("partition_error",
                 {{"topic", error.partition.first},
                  {"partition", error.partition.second},
                  {"error", error.name}},
                 error.text);
    return;
  }
  const std::shared_ptr<Partition> partition = found->second;
  const Beginning& beginning = partition->beginning();
  if (error.kind == Kind::unreadable && beginning.ahead.skips.contains(error.offset)) return;
  store::Halt halt{0, error.partition.first, error.partition.second, false, beginning.generation,
                   {}, "offset_out_of_range", error.text, {}, config_.worker.name};
  if (error.offset >= 0) halt.offset = error.offset;
  if (error.kind == Kind::unreadable) {
    halt.reason = "unreadable";
    halt.detail = "librdkafka cannot read what stands at offset " + std::to_string(error.offset) +
                  " (" + error.name + ": " + error.text + ")";
  }
  notices_.post(HaltWanted{partition, halt, false});
}

void Worker::serve_notices() {
  for (const Notice& notice : notices_.take())
    std::visit([this](const auto& what) { serve(what); }, notice);
  if (std::exchange(fetch_changed_, false)) fetch_all();
}

void Worker::serve(const Started& started) {
  const TopicPartition& id = started.partition->id();
  const auto found = partitions_.find(id);
  if (found == partitions_.end() || found->second != started.partition ||
      started.partition->over())
    return;
  log::info("partition_started",
            {{"topic", id.first},
             {"partition", id.second},
             {"offset", started.partition->beginning().offset},
             {"epoch", started.partition->beginning().epoch}},
            "agreed where to start");
  started.partition->polling.started = true;
  if (started.partition->beginning().started_runs > kTrustedRuns) {
    log::warning("cautious", {{"topic", id.first}, {"partition", id.second}},
                 "the last owners of this partition died before its checkpoint moved: one message "
                 "at a time until it does, so that the one that kills the process names itself");
    cautious_.push_back(started.partition);
    dispatcher_.set_cautious(true);
  }
  fetch_changed_ = true;
}

// Caution ends where the checkpoint has moved, or where there is nothing to be cautious about.
void Worker::end_caution() {
  if (cautious_.empty()) return;
  std::erase_if(cautious_, [](const std::shared_ptr<Partition>& partition) {
    return partition->over() || partition->checkpointed() > partition->beginning().offset ||
           (partition->polling.at_end && partition->progress().messages == 0);
  });
  if (cautious_.empty()) dispatcher_.set_cautious(false);
}

// A handler that does not come back holds its key, its lane and its order key for ever. The attempt
// is recorded and the process ended; PostgreSQL rolls back, and the message runs again elsewhere.
void Worker::watch_lanes() {
  for (const auto& lane : lanes_) {
    const auto running = lane->running();
    if (!running || Clock::now() - running->since < config_.worker.handler_timeout) continue;
    const Partition& partition = *running->partition;
    const std::string& handler = partition.route().handler.name;
    log::error("handler_hangs",
               {{"handler", handler},
                {"topic", partition.id().first},
                {"partition", partition.id().second},
                {"offset", running->offset}},
               "a handler ran longer than worker.handler_timeout; ending the process");
    try {
      store::Session session = lane_setup_.connect();
      const store::Source source{group_, partition.id().first, partition.beginning().generation,
                                 partition.id().second, running->offset};
      store::record_attempt(session, {source, "the handler ran longer than worker.handler_timeout",
                                      "", handler, milliseconds(0)});
    } catch (const store::DatabaseError& error) {
      log::error("attempt_not_recorded", {{"sqlstate", error.sqlstate()}}, "PostgreSQL is away");
    }
    hangs_ = true;
    return;
  }
}

// librdkafka takes whole lists: those that run go on where they are.
void Worker::fetch_all() {
  std::vector<kafka::Position> positions;
  for (const auto& [id, partition] : partitions_) {
    if (partition->over() || !partition->polling.started) continue;
    positions.push_back({id, partition->progress().next});
    unpause(*partition);
  }
  consumer_->start(positions);
}

void Worker::stop_partition(const std::shared_ptr<Partition>& partition) {
  dispatcher_.drop(*partition);
  unpause(*partition);
  partitions_.erase(partition->id());
  fetch_changed_ = true;
}

void Worker::serve(const HaltWanted& wanted) {
  std::vector<std::shared_ptr<Partition>> stopping;
  for (const auto& [id, partition] : partitions_)
    if (partition == wanted.partition ||
        (wanted.halt.whole_route && id.first == wanted.halt.topic))
      stopping.push_back(partition);
  if (std::ranges::find(stopping, wanted.partition) == stopping.end()) return;  // stopped already
  log::error("halted",
             {{"topic", wanted.halt.topic},
              {"partition", wanted.partition->id().second},
              {"offset", wanted.halt.offset.value_or(-1)},
              {"whole_route", wanted.halt.whole_route},
              {"reason", wanted.halt.reason}},
             wanted.recorded ? "is halted since " + wanted.halt.since + "; see `hapax status`"
                             : "halted; see `hapax status`, end it with `hapax resume`");
  for (const auto& partition : stopping) {
    store::Halt halt = wanted.halt;
    halt.partition = partition->id().second;
    const bool recorded = wanted.recorded || partition != wanted.partition;
    if (!recorded) metrics_.halted(halt.reason);
    halted_[partition->id()] = halt;
    stop_partition(partition);
    keeper_->halted(halt, recorded);
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

void Worker::take_again(const TopicPartition& id, milliseconds after) {
  const std::size_t index = route_index_.at(id.first);
  const auto partition = std::make_shared<Partition>(id, routes_[index], index);
  partitions_[id] = partition;
  keeper_->acquire({partition}, after);
}

// Kafka's offset follows the checkpoint; one commit is in flight at a time.
void Worker::commit_offsets() {
  if (Clock::now() < commit_not_before_) return;
  std::vector<std::shared_ptr<Partition>> all;
  for (const auto& [id, partition] : partitions_) all.push_back(partition);
  consumer_->commit(due_commits(all));
}

std::vector<kafka::Commit> Worker::due_commits(
    const std::vector<std::shared_ptr<Partition>>& partitions) const {
  std::vector<kafka::Commit> commits;
  for (const auto& partition : partitions) {
    if (!partition->polling.started) continue;
    const std::int64_t offset = partition->checkpointed();
    if (offset == partition->polling.committed) continue;
    commits.push_back({partition->id(), offset, partition->polling.leader_epoch,
                       kafka::Provenance{keeper_->store_id(), keeper_->cluster_id(),
                                         partition->beginning().epoch}
                           .text()});
  }
  return commits;
}

void Worker::on_committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                          const std::string& error) {
  using observe::OffsetCommitResult;
  if (result != kafka::CommitResult::done) commit_not_before_ = Clock::now() + kCommitAgain;
  switch (result) {
    case kafka::CommitResult::done:
      metrics_.offset_commit_ended(OffsetCommitResult::committed);
      for (const kafka::Commit& commit : commits)
        if (const auto found = partitions_.find(commit.partition); found != partitions_.end())
          found->second->polling.committed = commit.offset;
      break;
    case kafka::CommitResult::dropped:
      metrics_.offset_commit_ended(OffsetCommitResult::dropped);
      break;
    case kafka::CommitResult::later:
      metrics_.offset_commit_ended(OffsetCommitResult::deferred);
      log::debug("offset_commit_later", {{"error", error}}, "trying again");
      break;
    case kafka::CommitResult::fatal:
      metrics_.offset_commit_ended(OffsetCommitResult::fatal);
      on_client_error({true, "commit", error});
      break;
  }
}

void Worker::on_client_error(const kafka::ClientError& error) {
  if (error.fatal) {
    log::error("kafka_fatal", {{"error", error.name}}, error.text);
    health_.fatal("Kafka: " + error.text);
    fatal_ = true;
    return;
  }
  if (error.name == "_ALL_BROKERS_DOWN" && !brokers_down_) {
    brokers_down_ = true;
    health_.kafka_reachable(false);
  }
  log::warning("kafka_error", {{"error", error.name}}, error.text);
}

void Worker::on_assigned(const std::vector<TopicPartition>& partitions) {
  metrics_.rebalanced(observe::RebalanceEvent::assigned);
  health_.joined();
  log::info("assigned", {{"partitions", partitions.size()}}, "the group assigned partitions");
  std::vector<std::shared_ptr<Partition>> taken;
  for (const TopicPartition& id : partitions) {
    const std::size_t index = route_index_.at(id.first);
    taken.push_back(std::make_shared<Partition>(id, routes_[index], index));
    partitions_[id] = taken.back();
    metrics_.partition_assigned(id.first, id.second);
    health_.partition_assigned(id.first, id.second);
  }
  keeper_->acquire(taken);
}

// What is queued is dropped, what runs is waited for; then the last checkpoint, and its offset.
std::vector<std::shared_ptr<Partition>> Worker::drain(const std::vector<TopicPartition>& ids,
                                                      milliseconds timeout) {
  std::vector<std::shared_ptr<Partition>> draining;
  for (const TopicPartition& id : ids) {
    const auto found = partitions_.find(id);
    if (found == partitions_.end()) continue;
    dispatcher_.drop(*found->second);
    unpause(*found->second);
    draining.push_back(found->second);
  }
  if (!dispatcher_.wait_idle(draining, Clock::now() + timeout))
    log::warning("revoke_timeout", {{"timeout_ms", timeout.count()}},
                 "messages still run; their partitions are given up, the next owner waits for "
                 "their keys");
  return draining;
}

void Worker::on_revoked(const std::vector<TopicPartition>& partitions, bool lost) {
  metrics_.rebalanced(lost ? observe::RebalanceEvent::lost : observe::RebalanceEvent::revoked);
  log::info("revoked", {{"partitions", partitions.size()}, {"lost", lost}},
            "the group takes partitions away");
  const auto drained = drain(partitions, config_.worker.revoke_timeout);
  keeper_->release(drained);
  if (!lost) consumer_->commit(due_commits(drained));
  for (const TopicPartition& id : partitions) {
    partitions_.erase(id);
    halted_.erase(id);
    metrics_.partition_gone(id.first, id.second);
    health_.partition_gone(id.first, id.second);
  }
}

// Ends within shutdown_timeout, whatever Kafka does: giving up is safe.
bool Worker::leave() {
  health_.draining();
  log::info("stopping", {{"partitions", partitions_.size()}}, "draining; again to stop at once");
  const auto until = Clock::now() + config_.worker.shutdown_timeout;
  const auto left = [&] {
    const auto rest = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    return std::max(rest, milliseconds(0));
  };
  std::vector<TopicPartition> ids;
  for (const auto& [id, partition] : partitions_) ids.push_back(id);
  const auto drained = drain(ids, std::min(left(), config_.worker.revoke_timeout));
  dispatcher_.stop();
  keeper_->release(drained);
  const std::vector<kafka::Commit> commits = due_commits(drained);
  try {
    if (!commits.empty() && left().count() > 0)
      consumer_->commit_and_wait(commits, std::min(left(), milliseconds(2000)));
  } catch (const std::exception& error) {
    log::warning("last_commit_failed", {{"error", error.what()}},
                 "the next owner starts at the checkpoint all the same");
  }
  partitions_.clear();
  const bool closed = left().count() > 0 && consumer_->close(left());
  log::info("stopped", {{"left_group", closed}}, "stopped");
  return closed && dispatcher_.wait_idle(drained, Clock::now());
}

void Worker::report() {
  const auto now = Clock::now();
  if (now - last_report_ < kReportInterval) return;
  last_report_ = now;
  watch_lanes();
  const Dispatcher::Load load = dispatcher_.load();
  std::size_t messages = 0, bytes = 0;
  for (const auto& [id, partition] : partitions_) {
    using observe::PartitionState;
    observe::PartitionReport report;
    observe::PartitionProgress shown;
    if (!partition->over() && partition->polling.started) {
      const Partition::Progress progress = partition->progress();
      messages += progress.messages;
      bytes += progress.bytes;
      report.watermark = shown.watermark = progress.watermark;
      shown.checkpoint = partition->checkpointed();
      report.in_flight = static_cast<std::int64_t>(progress.messages);
      if (const auto end = consumer_->known_end(id))
        report.lag = shown.lag = std::max<std::int64_t>(0, *end - progress.watermark);
      const bool idle = partition->polling.at_end && progress.messages == 0;
      if (idle) report.lag = shown.lag = 0;
      report.state = idle                        ? PartitionState::idle
                     : partition->polling.paused ? PartitionState::paused_full
                                                 : PartitionState::running;
    }
    metrics_.partition_progress(id.first, id.second, shown);
    metrics_.partition_state(id.first, id.second, report.state);
    health_.partition_report(id.first, id.second, report);
  }
  for (const auto& [id, halt] : halted_) {
    metrics_.partition_state(id.first, id.second, observe::PartitionState::halted);
    health_.partition_report(id.first, id.second,
                             {observe::PartitionState::halted, halt.reason, {}, {}, 0});
  }
  metrics_.in_flight(messages);
  metrics_.queued(load.queued, bytes);
  metrics_.waiting_for_retry(load.waiting);
  if (brokers_down_) probe_brokers();
}

// librdkafka tells when all brokers are down, but not when one is back.
void Worker::probe_brokers() {
  try {
    (void)consumer_->partition_count(routes_.front().topic, kProbeTimeout);
  } catch (const std::exception&) {
    return;  // still down
  }
  brokers_down_ = false;
  health_.kafka_reachable(true);
  log::info("kafka_up", {}, "a broker answers again");
}

}  // namespace hapax::worker
