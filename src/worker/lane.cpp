#include "worker/lane.hpp"

#include <utility>

#include "flow/crash_point.hpp"
#include "payload/reader.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using std::chrono::milliseconds;

constexpr milliseconds kFirstReconnectWait{100};
constexpr milliseconds kMaxReconnectWait{2000};
// How long a batch asks for schemas. The other messages take another turn.
constexpr milliseconds kMaxAsking{2000};

}  // namespace

Lane::Lane(LaneSetup& setup, std::vector<std::unique_ptr<Handler>> handlers, std::uint64_t seed)
    : setup_(setup),
      handlers_(std::move(handlers)),
      settler_(setup),
      runs_(setup.tracer),
      processor_(setup.connect, seed,
                 [this](const flow::Task* task, Clock::time_point now) { watch(task, now); }),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Lane::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<Batch> batch = setup_.dispatcher.take(processor_.batch_limit());
    if (!batch) return;
    setup_.metrics.lane_became_busy();
    bool postgres_away = run_batch(std::move(*batch), stop);
    while (next_) {
      batch.emplace();
      batch->works.push_back(*std::exchange(next_, std::nullopt));
      postgres_away = run_batch(std::move(*batch), stop);
    }
    setup_.metrics.lane_became_free();
    if (postgres_away) wait_for_postgres(stop);
  }
}

flow::Task task_of(LaneSetup& setup, const Work& work, const Item& item, bool cautious) {
  const Partition& partition = *work.partition;
  const Beginning& beginning = partition.beginning();
  const Message& message = item.read ? item.read->message : item.record->message();
  const auto skip = beginning.known.skips.find(message.offset());
  return {.route = partition.route(),
          .message = message,
          .group = setup.group,
          .generation = beginning.generation,
          .guard_below = beginning.guard_below,
          .doubt_below = beginning.doubt_below,
          .attempts = item.attempts,
          .outages = item.outages,
          .cautious = cautious,
          .skip = skip == beginning.known.skips.end() ? nullptr : &skip->second,
          .failing = item.failing,
          .incarnation = beginning.incarnation,
          .announced = item.announced,
          .crashes = item.crashes,
          .remembered = item.remembered,
          .has_letter = beginning.known.letters.contains(message.offset()),
          .breaker = &setup.breakers[partition.route_index()],
          .agains = item.agains,
          .epoch = beginning.epoch,
          .answered = item.answered ? &*item.answered : nullptr,
          .settled = beginning.known.settled.contains(message.offset()),
          .in_doubt = item.in_doubt,
          .reading = item.read ? &item.read->reading : nullptr};
}

namespace {

bool must_be_read(const flow::Route& route, const Item& item) {
  if (route.payload == nullptr || !route.payload->decodes()) return false;
  return item.read == nullptr;
}

// Decodes the message if its schema is known. Does not ask the registry.
bool read_at_once(const flow::Route& route, Item& item) {
  if (!must_be_read(route, item)) return true;
  auto reading = route.payload->read_at_once(item.record->message());
  if (!reading) return false;
  item.read = std::make_unique<payload::ReadMessage>(item.record->message(), *std::move(reading));
  return true;
}

// Decodes the message. If it may not ask the registry and does not know the schema, the message
// waits.
void decode(const flow::Route& route, Item& item, bool may_ask) {
  item.read = payload::read_message(route.payload.get(), item.record->message(), may_ask);
  flow::crash_point("message_decoded");
}

}  // namespace

// Makes the jobs of a batch, and decodes their payloads if the route decodes. A cautious message is
// decoded later, when its run is announced.
std::vector<flow::Job> Lane::jobs_of(Batch& batch) {
  const flow::Route& route = batch.works.front().partition->route();
  Handler* const handler = handlers_[batch.works.front().partition->route_index()].get();
  const auto ask_until = Clock::now() + kMaxAsking;
  std::vector<flow::Job> jobs;
  for (std::size_t w = 0; w < batch.works.size(); ++w)
    for (Item& item : batch.works[w].items) {
      if (!batch.cautious && must_be_read(route, item))
        decode(route, item, Clock::now() < ask_until);
      jobs.push_back({task_of(setup_, batch.works[w], item, batch.cautious), handler, w});
    }
  return jobs;
}

std::vector<Outcome> Lane::run_jobs(std::vector<flow::Job>& jobs, Batch& batch) {
  if (jobs.size() > 1) return processor_.process(jobs);
  Work& work = batch.works.front();
  Item& only = work.items.front();
  flow::Task& task = jobs.front().task;
  std::optional<flow::Task> read_late;  // the watchdog may see it until process() is back
  if (batch.cautious && must_be_read(work.partition->route(), only))
    task.read = [&]() -> const flow::Task& {
      if (!only.read) decode(work.partition->route(), only, true);
      read_late.emplace(task_of(setup_, work, only, true));
      read_late->trace = task.trace;
      return *read_late;
    };
  Outcome outcome = processor_.process(task, *jobs.front().handler, [&] { return prefetch(work); });
  task.read = {};
  return {std::move(outcome)};
}

// True if PostgreSQL is away.
bool Lane::run_batch(Batch batch, const std::stop_token& stop) {
  std::vector<flow::Job> jobs = jobs_of(batch);
  const auto began = Clock::now();
  if (setup_.tracer != nullptr) begin_run(jobs, batch.works, began);
  set_running(&jobs.front().task);
  const std::vector<Outcome> outcomes = run_jobs(jobs, batch);
  const auto ended = Clock::now();
  set_running(nullptr);
  setup_.route_metrics[batch.works.front().partition->route_index()].transaction_ended(ended -
                                                                                       began);
  if (next_ && (!flow::is_settled(outcomes.front().result) || stop.stop_requested() ||
                next_->partition->over()))
    return_prefetched();
  if (setup_.tracer != nullptr) end_run(outcomes, ended);
  const bool postgres_away = settler_.settle(batch.works, outcomes, ended, jobs.front().task.trace);
  for (Work& work : batch.works)
    // Free the decoded payload, because the message may wait long.
    for (Item& item : work.items) item.read.reset();
  setup_.dispatcher.finish(std::move(batch.works));
  return postgres_away;
}

void Lane::begin_run(std::vector<flow::Job>& jobs, std::vector<Work>& works,
                     Clock::time_point now) {
  std::vector<traces::Received> messages;
  messages.reserve(jobs.size());
  for (Work& work : works)
    for (Item& item : work.items)
      messages.push_back({item.record->message(), std::exchange(item.received, {})});
  const traces::Trace* const trace =
      runs_.begin(messages, jobs.front().task.route.handler.name, now);
  for (flow::Job& job : jobs) job.task.trace = trace;
}

void Lane::end_run(std::span<const Outcome> outcomes, Clock::time_point now) {
  std::vector<traces::Ended> ends;
  ends.reserve(outcomes.size());
  for (const Outcome& outcome : outcomes) ends.push_back(flow::ended_as(outcome));
  runs_.end(ends, now);
}

// The next message, whose key the processor takes with the COMMIT of `current`. Null: none.
const flow::Task* Lane::prefetch(const Work& current) {
  next_ = setup_.dispatcher.prefetch(current, Clock::now());
  // If the next message has waited for a key or a retry, it may wait again. `current` must not wait
  // for it.
  if (!next_ || next_->items.front().not_before != Clock::time_point{}) return nullptr;
  if (!read_at_once(next_->partition->route(), next_->items.front())) return nullptr;
  next_task_.emplace(task_of(setup_, *next_, next_->items.front(), false));
  return &*next_task_;
}

void Lane::return_prefetched() {
  processor_.abandon();
  next_->items.front().read.reset();
  std::vector<Work> unrun;
  unrun.push_back(*std::exchange(next_, std::nullopt));
  setup_.dispatcher.finish(std::move(unrun));
}

Lane::Current Lane::current_of(const flow::Task& task) {
  return {task.route, task.generation, task.message.partition(), task.message.offset(), task.epoch};
}

void Lane::set_running(const flow::Task* task) {
  const sync::Lock lock(running_mutex_);
  running_.reset();
  if (task != nullptr) running_.emplace(current_of(*task));
  handler_since_.reset();
}

void Lane::watch(const flow::Task* task, Clock::time_point now) {
  const sync::Lock lock(running_mutex_);
  handler_since_.reset();
  if (task == nullptr) return;  // the handler is back, but its message is not done
  running_.emplace(current_of(*task));
  handler_since_ = now;
}

std::optional<Lane::Running> Lane::running() const {
  const sync::Lock lock(running_mutex_);
  if (!running_) return std::nullopt;
  return Running{{setup_.group, running_->route.topic, running_->generation, running_->partition,
                  running_->offset},
                 running_->route.handler.name,
                 handler_since_,
                 running_->epoch};
}

void Lane::wait_for_postgres(const std::stop_token& stop) {
  milliseconds pause = kFirstReconnectWait;
  std::string why;
  while (!stop.stop_requested()) {
    wait_unless_stopped(stop, pause);
    const auto tried_at = PostgresState::Clock::now();
    if (processor_.reachable(why)) {
      setup_.postgres.came_up();
      return;
    }
    setup_.postgres.went_down("connecting", {}, why, tried_at);
    pause = std::min(pause * 2, kMaxReconnectWait);
  }
}

}  // namespace hapax::worker
