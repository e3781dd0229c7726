// How the worker is: what metrics, readiness and the watchdog are told.
#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "observe/log.hpp"
#include "store/dead_letter.hpp"
#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kReportInterval{500};
constexpr std::chrono::seconds kSilence{15};  // of PostgreSQL: several hosts may be tried
constexpr milliseconds kRecordTimeout{5000};
constexpr std::chrono::seconds kGroupIsSlow{5};
constexpr milliseconds kQuiet{2000};    // of PostgreSQL: a handler may wait for the same
constexpr std::size_t kShownKey = 100;  // bytes of a record key in the log

}  // namespace

// A handler that does not come back holds its key, its lane and its order key for ever. The attempt
// is recorded and the process ended; PostgreSQL rolls back, and the message runs again elsewhere.
//
// Only the handler's own time counts, and not while PostgreSQL does not answer.
void Worker::watch_handlers() {
  if (postgres_.is_down() || keeper_.silence() > kQuiet) watched_from_ = Clock::now();
  const auto overdue = [&](const std::optional<Lane::Running>& running) {
    return running && running->since &&
           Clock::now() - std::max(*running->since, watched_from_) >=
               config_.worker.handler_timeout;
  };
  const auto hangs = [&](const std::optional<Lane::Running>& running) {
    log::error("handler_hangs",
               {{"handler", running->handler},
                {"topic", running->source.topic},
                {"partition", running->source.partition},
                {"offset", running->source.offset}},
               "a handler ran longer than worker.handler_timeout; ending the process");
    hangs_ = true;
  };
  // Its row is locked by the run; but it was counted when it began.
  if (const auto replay = replays_->running();
      overdue(replay) && postgres_answers([](store::Session&) {}))
    return hangs(replay);
  for (const auto& lane : lanes_) {
    const auto running = lane->running();
    if (!overdue(running)) continue;
    const auto record = [run = *running](store::Session& session) {
      store::record_attempt(session,
                            {run.source, "the handler ran longer than worker.handler_timeout", "",
                             run.handler, milliseconds(0)});
    };
    if (postgres_answers(record)) return hangs(running);
  }
}

// A killed worker stays a member until its session ends, and the group waits for it.
void Worker::wait_for_group() {
  if (!waits_for_group_ || Clock::now() - *waits_for_group_ < kGroupIsSlow) return;
  waits_for_group_.reset();
  log::info("waiting_for_group", {},
            "the group assigns nothing yet. Kafka may wait for a member that died, at most its "
            "session.timeout.ms, or for members that are still leaving");
}

// Asks on a thread of its own, because PostgreSQL itself may hang. If it does, the watchdog waits
// as long again.
bool Worker::postgres_answers(std::function<void(store::Session&)> question) {
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<void()> ask(
      [connect = lane_setup_.connect, question = std::move(question), given_up] {
        store::Session session = connect();
        if (!*given_up) question(session);
      });
  std::future<void> asked = ask.get_future();
  std::thread(std::move(ask)).detach();
  try {
    if (asked.wait_for(kRecordTimeout) == std::future_status::ready) {
      asked.get();
      return true;
    }
  } catch (const store::DatabaseError& error) {
    if (error.fault().kind == store::Fault::Kind::sql) {
      log::error("attempt_not_recorded", {{"sqlstate", error.sqlstate()}},
                 "PostgreSQL answers, and refuses");
      return true;
    }
  }
  *given_up = true;
  watched_from_ = Clock::now();
  return false;
}

// The offset that a paused partition waits for, where that is a retry and not the lanes. One line
// when that begins, and one when the partition goes on.
std::optional<std::int64_t> Worker::blocked_at(Partition& partition, std::int64_t watermark) {
  const auto& [topic, number] = partition.id();
  std::optional<std::int64_t>& blocked = partition.polling.blocked;
  const bool paused = partition.polling.paused;
  const auto by = paused ? dispatcher_.blocking(partition, watermark) : std::nullopt;
  if (by && !blocked) {
    const std::string key = by->record_key.value_or("");
    log::warning("partition_paused",
                 {{"topic", topic},
                  {"partition", number},
                  {"offset", watermark},
                  {"attempts", by->attempts},
                  {"record_key", key.size() <= kShownKey ? key : key.substr(0, kShownKey) + "…"}},
                 "the partition is as far ahead of a message that waits for its next try as "
                 "worker.queue lets it; the error is in hapax.attempts, see `hapax status`");
  }
  if (by) blocked = watermark;
  if (blocked && !paused && watermark > *blocked) {
    log::info("partition_goes_on", {{"topic", topic}, {"partition", number}, {"offset", watermark}},
              "the message that it was paused for is settled");
    blocked.reset();
  }
  return blocked && *blocked >= watermark ? blocked : std::nullopt;
}

void Worker::report() {
  const auto now = Clock::now();
  if (now - last_report_ < kReportInterval) return;
  last_report_ = now;
  watch_handlers();
  wait_for_group();
  const Dispatcher::Load load = dispatcher_.load();
  std::map<TopicPartition, std::int64_t> running;
  for (const auto& lane : lanes_)
    if (const auto has = lane->running()) ++running[{has->source.topic, has->source.partition}];
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
      shown.oldest_unsettled =
          progress.waiting_since ? now - *progress.waiting_since : Clock::duration::zero();
      shown.blocked = blocked_at(*partition, progress.watermark);
      if (shown.blocked)
        report.reason = "paused: offset " + std::to_string(*shown.blocked) + " waits for a retry";
      report.in_flight = static_cast<std::int64_t>(progress.messages);
      // What runs may be of an assignment before.
      report.running = std::min(report.in_flight, running[id]);
      if (const auto end = consumer_.known_end(id))
        report.lag = shown.lag = std::max<std::int64_t>(0, *end - progress.watermark);
      const bool idle = partition->polling.at_end && progress.messages == 0;
      if (idle && report.lag.value_or(0) > 0)
        report.reason =
            "at the end of what Kafka gives out: the rest has just come, or waits for a "
            "transaction to end";
      if (idle) report.lag = 0;  // nothing for a worker to do
      if (!shown.lag) shown.lag = report.lag;
      if (!partition->polling.refused.empty()) report.reason = partition->polling.refused;
      report.state = !partition->polling.refused.empty() ? PartitionState::refused
                     : idle                              ? PartitionState::idle
                     : partition->polling.paused         ? PartitionState::paused_full
                                                         : PartitionState::running;
    } else {
      report.reason = partition->delayed();
    }
    metrics_.partition_progress(id.first, id.second, shown);
    metrics_.partition_state(id.first, id.second, report.state);
    health_.partition_report(id.first, id.second, report);
  }
  for (const auto& [id, halt] : assignment_.halted()) {
    metrics_.partition_progress(id.first, id.second, {});  // nobody looks any more
    metrics_.partition_state(id.first, id.second, observe::PartitionState::halted);
    health_.partition_report(id.first, id.second,
                             {observe::PartitionState::halted, halt.reason, {}, {}, 0});
  }
  metrics_.in_flight(messages);
  metrics_.queued(load.queued, bytes);
  metrics_.waiting_for_retry(load.waiting);
  if (keeper_.silence() > kSilence)
    postgres_.went_down("writing checkpoints", "", "it does not answer");
  kafka_health_.turn();
}

}  // namespace hapax::worker
