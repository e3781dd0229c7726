#include "worker/poll_thread.hpp"

#include <algorithm>
#include <utility>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kLeastForRelease{1000};

}  // namespace

PollThread::PollThread(PollThreadSetup setup)
    : setup_(std::move(setup)),
      caution_(setup_.lanes.dispatcher, setup_.settings.lanes, setup_.settings.queue.messages),
      fetches_(partitions_, setup_.consumer, setup_.now),
      intake_(setup_.settings, partitions_, setup_.lanes.dispatcher, fetches_,
              setup_.lanes.route_metrics, setup_.order_hash, setup_.now, setup_.sleep),
      assignment_(setup_.routes, partitions_, setup_.lanes.dispatcher, fetches_, setup_.keeper,
                  setup_.health, setup_.lanes.metrics),
      partition_errors_(setup_.settings.name, setup_.earliest_when_out_of_range, partitions_,
                        assignment_, fetches_, setup_.now),
      record_looks_(partitions_, fetches_, setup_.keeper, setup_.now),
      offset_commits_(partitions_, setup_.consumer, setup_.keeper, setup_.lanes.metrics, setup_.now,
                      setup_.lanes.tracer),
      membership_(setup_.consumer, setup_.now),
      partition_reports_(partitions_, assignment_, setup_.lanes.dispatcher, setup_.consumer,
                         setup_.health, setup_.lanes.metrics) {}

void PollThread::serve(kafka::Event event) {
  if (auto* record = std::get_if<std::unique_ptr<kafka::Record>>(&event)) {
    receive(std::move(*record));
  } else if (const auto* end = std::get_if<kafka::EndOfPartition>(&event)) {
    serve(*end);
  } else if (const auto* partition_error = std::get_if<kafka::PartitionError>(&event)) {
    serve(*partition_error);
  } else if (const auto* client_error = std::get_if<kafka::ClientError>(&event)) {
    setup_.kafka_health.failed(*client_error);
  }
}

void PollThread::receive(std::unique_ptr<kafka::Record> record) {
  const Message& message = record->message();
  // Null if the partition was revoked or halted meanwhile, or if the record was fetched before the
  // partition starts again.
  const auto partition = find_running(partitions_, std::pair(message.topic(), message.partition()));
  if (!partition) return record_looks_.serve(*record);
  if (partition_errors_.log_was_rewritten(partition, *record)) return;
  intake_.receive(partition, std::move(record));
}

void PollThread::serve(const kafka::EndOfPartition& end) {
  if (const auto partition = find_running(partitions_, end.partition))
    intake_.reached_end(*partition, end.offset);
  else
    record_looks_.serve(end);
}

void PollThread::serve(const kafka::PartitionError& error) {
  const bool of_group =
      error.kind == kafka::PartitionError::Kind::refused && error.partition.first.empty();
  if (of_group)
    setup_.kafka_health.refused_by_group(error.text);
  else if (!record_looks_.serve(error))
    partition_errors_.serve(error);
}

void PollThread::turn() {
  serve_posted();
  assignment_.turn();
  membership_.turn();
  caution_.begin();
  fetches_.turn();
  intake_.turn();
  if (offset_commits_.may_send()) {
    serve_posted();  // what the keeper's look at the logs has found
    offset_commits_.send();
  }
  caution_.end();
}

void PollThread::serve_posted() {
  for (const Notice& notice : setup_.lanes.notices.take())
    std::visit([this](const auto& what) { serve(what); }, notice);
}

void PollThread::serve(const Started& started) {
  const TopicPartition& id = started.partition->id();
  if (!is_current(partitions_, started.partition)) return;
  log::info("partition_started",
            {{"topic", id.first},
             {"partition", id.second},
             {"offset", started.partition->beginning().offset},
             {"epoch", started.partition->beginning().epoch}},
            "agreed on the start");
  started.partition->polling.started = true;
  setup_.lanes.breakers[started.partition->route_index()].close();
  caution_.started(started.partition);
  fetches_.started(id);
}

// The next process starts at the checkpoints, and finds that the topic is another one.
void PollThread::serve(const ClientBroken& broken) {
  setup_.kafka_health.failed(
      {true, "topic_recreated",
       "topic " + broken.topic + " was made again, and librdkafka " + kafka::Consumer::version() +
           " damages its memory then: the process ends, to be started again"});
}

void PollThread::report(const std::vector<std::unique_ptr<Lane>>& lanes) {
  membership_.tell_if_slow();
  partition_reports_.write(lanes);
}

void PollThread::assigned(const std::vector<TopicPartition>& ids) {
  setup_.lanes.metrics.rebalanced(observe::RebalanceEvent::assigned);
  membership_.assigned();
  setup_.health.joined();
  log::info("assigned", {{"partitions", ids.size()}}, "the group assigned partitions");
  for (const TopicPartition& id : assignment_.assigned(ids)) membership_.has_no_route(id);
  setup_.keeper.joined();
}

void PollThread::revoked(const std::vector<TopicPartition>& ids, bool lost) {
  setup_.lanes.metrics.rebalanced(lost ? observe::RebalanceEvent::lost
                                       : observe::RebalanceEvent::revoked);
  membership_.waits();
  log::info("revoked", {{"partitions", ids.size()}, {"lost", lost}},
            "the group takes partitions away");
  if (lost) setup_.health.left();
  const auto until = setup_.now() + setup_.settings.revoke_timeout;
  const Drained drained = drain(ids, setup_.settings.revoke_timeout);
  const auto rest = std::chrono::duration_cast<milliseconds>(until - setup_.now());
  setup_.keeper.release(drained.partitions, drained.idle, std::max(rest, kLeastForRelease));
  if (!lost) offset_commits_.send_last(drained.partitions);
  offset_commits_.forget_due();
  for (const TopicPartition& id : ids) {
    assignment_.revoked(id);
    partition_errors_.forget(id);
  }
}

void PollThread::committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                           const std::string& error) {
  offset_commits_.answered(commits, result, error);
  if (result == kafka::CommitResult::fatal) setup_.kafka_health.failed({true, "commit", error});
}

// The halts are recorded before the revoke ends. Otherwise the next owner would run the messages
// that they stop.
PollThread::Drained PollThread::drain(const std::vector<TopicPartition>& ids,
                                      milliseconds timeout) {
  Drained drained;
  drained.partitions = assignment_.drop(ids);
  // By the real clock, because lanes are threads, and `setup_.now` does not change their time.
  drained.idle = setup_.lanes.dispatcher.wait_idle(drained.partitions, Clock::now() + timeout);
  if (!drained.idle) {
    log::warning("revoke_timeout", {{"timeout_ms", timeout.count()}},
                 "messages still run; their partitions are given up, the next owner waits for "
                 "their keys");
    setup_.tell_running();
  }
  serve_posted();
  return drained;
}

PollThread::Drained PollThread::drain_all(milliseconds timeout) {
  std::vector<TopicPartition> ids;
  for (const auto& [id, partition] : partitions_) ids.push_back(id);
  return drain(ids, timeout);
}

void PollThread::leave(const Drained& drained, Clock::time_point until) {
  offset_commits_.send_last_and_wait(drained.partitions, until);
  assignment_.clear();
}

}  // namespace hapax::worker
