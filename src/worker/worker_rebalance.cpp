// Partitions come and go: what a worker does when the group assigns or takes them, and when it
// leaves.
#include <future>
#include <thread>

#include "observe/log.hpp"
#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kLeastForRelease{1000};
constexpr milliseconds kLeastForThreads{500};

}  // namespace

void Worker::on_assigned(const std::vector<TopicPartition>& partitions) {
  metrics_.rebalanced(observe::RebalanceEvent::assigned);
  membership_.assigned();
  health_.joined();
  log::info("assigned", {{"partitions", partitions.size()}}, "the group assigned partitions");
  for (const TopicPartition& id : assignment_.assigned(partitions)) membership_.has_no_route(id);
  keeper_.joined();
}

// What is queued is dropped, what runs is waited for, and the halts that it asked for are served:
// recorded only after the revoke, the next owner would run first what they stop.
Worker::Drained Worker::drain(const std::vector<TopicPartition>& ids, milliseconds timeout) {
  Drained drained;
  drained.partitions = assignment_.drop(ids);
  drained.idle = dispatcher_.wait_idle(drained.partitions, Clock::now() + timeout);
  if (!drained.idle)
    log::warning("revoke_timeout", {{"timeout_ms", timeout.count()}},
                 "messages still run; their partitions are given up, the next owner waits for "
                 "their keys");
  if (!drained.idle) tell_running();
  serve_posted();
  return drained;
}

void Worker::tell_running() const {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const auto running = lanes_[lane]->running();
    if (!running) continue;
    const auto seconds = running->since ? (Clock::now() - *running->since) / std::chrono::seconds(1)
                                        : std::int64_t{0};
    log::warning("still_runs",
                 {{"lane", lane},
                  {"handler", running->handler},
                  {"topic", running->source.topic},
                  {"partition", running->source.partition},
                  {"offset", running->source.offset},
                  {"seconds", seconds}},
                 running->since ? "its handler has not come back"
                                : "its handler does not run; it waits for PostgreSQL");
  }
}

void Worker::on_revoked(const std::vector<TopicPartition>& partitions, bool lost) {
  metrics_.rebalanced(lost ? observe::RebalanceEvent::lost : observe::RebalanceEvent::revoked);
  membership_.waits();
  log::info("revoked", {{"partitions", partitions.size()}, {"lost", lost}},
            "the group takes partitions away");
  if (lost) health_.left();
  const auto until = Clock::now() + config_.worker.revoke_timeout;
  const auto drained = drain(partitions, config_.worker.revoke_timeout);
  const auto rest = std::chrono::duration_cast<milliseconds>(until - Clock::now());
  keeper_.release(drained.partitions, drained.idle, std::max(rest, kLeastForRelease));
  if (!lost) offset_commits_.send_last(drained.partitions);
  offset_commits_.forget_due();
  for (const TopicPartition& id : partitions) {
    assignment_.revoked(id);
    partition_errors_.forget(id);
  }
}

// Ends within shutdown_timeout, whatever Kafka, PostgreSQL or a handler do: giving up is safe.
bool Worker::leave() {
  health_.draining();
  log::info("stopping", {{"partitions", partitions_.size()}}, "draining; again to stop at once");
  const auto until = Clock::now() + config_.worker.shutdown_timeout;
  replays_->stop();
  if (publisher_) publisher_->stop();
  const auto left = [&] {
    const auto rest = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    return std::max(rest, milliseconds(0));
  };
  std::vector<TopicPartition> ids;
  for (const auto& [id, partition] : partitions_) ids.push_back(id);
  const auto drained_by = Clock::now() + std::min(left(), config_.worker.revoke_timeout);
  const auto drained = drain(ids, std::min(left(), config_.worker.revoke_timeout));
  dispatcher_.stop();
  // Also of partitions that were halted or taken away while a message of theirs ran.
  const bool lanes_idle = dispatcher_.wait_all_idle(drained_by);
  const bool released =
      keeper_.release(drained.partitions, drained.idle, std::max(left() / 2, kLeastForRelease));
  offset_commits_.send_last_and_wait(drained.partitions, until);
  assignment_.clear();
  const bool closed = left().count() > 0 && consumer_.close(left());
  log::info("stopped", {{"left_group", closed}}, "stopped");
  // A replay has as long as everything else; cut off, it counts as one run more.
  const bool idle = replays_->wait_idle(until);
  if (!lanes_idle) {
    if (drained.idle) tell_running();
    for (const auto& lane : lanes_)
      if (const auto running = lane->running(); running && running->since && !postgres_.is_down())
        handlers_run_ = true;
  }
  // Who waits for a PostgreSQL that does not answer would outlast shutdown_timeout.
  return closed && idle && released && lanes_idle && !postgres_.is_down() &&
         end_threads_until(until);
}

// Lanes, retention and starts may wait for a statement that hangs. False if one does: it still
// uses this object.
bool Worker::end_threads_until(Clock::time_point until) {
  std::packaged_task<void()> end([this] { end_threads(); });
  const std::future<void> ended = end.get_future();
  std::thread(std::move(end)).detach();
  return ended.wait_until(std::max(until, Clock::now() + kLeastForThreads)) ==
         std::future_status::ready;
}

}  // namespace hapax::worker
