// The part of the poll thread's world that holds what can be seen against the promises.
#pragma once

#include "poll_world.hpp"

namespace hapax::worker::poll_simulation {

inline void PollWorld::check() {
  hold(in_hand() <= 2 * ground_.queue + 1, "the queue holds " + std::to_string(in_hand()));
  if (in_hand() >= 2 * ground_.queue) ++reached_["twice the queue"];
  for (const TopicPartition& id : ids_) {
    const auto partition = running(id);
    hold(partition || !kafka_.fetches(id), name(id) + " is fetched though it does not run");
    if (partition) check_in_hand(*partition, kafka_.logs.at(id));
  }
}

// Nothing of the log is passed over, and nothing is taken twice.
inline void PollWorld::check_in_hand(const Partition& partition, const Log& log) {
  const Truth& truth = truths_.at(&partition);
  if (truth.made != log.made) return;
  const auto progress = partition.progress();
  std::size_t open = 0;
  std::int64_t watermark = progress.next;
  for (const Logged& record : log.records) {
    if (record.offset < partition.beginning().offset || record.offset >= progress.next ||
        truth.settled.contains(record.offset))
      continue;
    watermark = std::min(watermark, record.offset);
    ++open;
  }
  hold(progress.messages == open && progress.watermark == watermark,
       name(partition.id()) + " has " + std::to_string(progress.messages) +
           " messages in hand and its watermark at " + std::to_string(progress.watermark) +
           ", not " + std::to_string(open) + " and " + std::to_string(watermark));
}

inline void PollWorld::check_commits(const std::vector<kafka::Commit>& commits) {
  for (const kafka::Commit& commit : commits) {
    const TopicPartition& id = commit.partition;
    const std::string what = name(id) + " offset " + std::to_string(commit.offset);
    tell(what + " is committed");
    hold(kafka_.assigned.contains(id) && (revoking_ != id || !lost_),
         what + " is committed, and the partition is not ours");
    const Row& row = keeper_.rows[id];
    const Log& log = kafka_.logs.at(id);
    const auto newest = std::ranges::find_if(keeper_.partitions.rbegin(), keeper_.partitions.rend(),
                                             [&](const auto& one) { return one->id() == id; });
    hold(revoking_ == id || !(*newest)->over(),
         what + " is committed of a partition that was stopped");
    // Until the keeper finds that another has the row, what it wrote last may still go to Kafka.
    hold(row.next >= commit.offset || (*newest)->beginning().epoch != row.epoch,
         what + " is committed above the checkpoint " + std::to_string(row.next));
    if (ground_.has_ids) continue;
    hold(row.made == log.made || (revoking_ != id && log.made_at >= keeper_.looked),
         what + " is committed into another log");
    hold(revoking_ == id || commit.offset != row.next || keeper_.looked > row.written,
         what + " is committed before the log was looked at");
    ++reached_["committed after a look"];
  }
}

// One partition is paused only for what it holds itself when its message comes.
inline void PollWorld::check_pause(const TopicPartition& id) {
  const auto partition = running(id);
  if (!partition) return;  // it is stopped
  ++reached_["paused"];
  if (counted_ >= 2 * ground_.queue) return;  // all are, and this is the only one
  const auto progress = partition->progress();
  const std::size_t share = std::max<std::size_t>(1, ground_.queue / poll_.partitions());
  const bool of_queue = in_hand() >= ground_.queue && held_ >= share;
  const bool too_far = progress.span >= std::max<std::size_t>(10, 10 * ground_.queue);
  hold(of_queue || too_far, name(id) + " is paused within its share");
}

inline void PollWorld::check_start(const kafka::Position& position) {
  const TopicPartition& id = position.partition;
  const auto partition = running(id);
  hold(partition && kafka_.assigned.contains(id), name(id) + " is fetched before it runs");
  const std::int64_t next = partition->progress().next;
  const auto& before = partition->handover.read_before;
  const std::int64_t expected = before.empty() ? next : std::min(next, before.front().offset);
  hold(position.offset == expected, name(id) + " is fetched from " +
                                        std::to_string(position.offset) + ", not from " +
                                        std::to_string(expected));
  ++reached_["fetched"];
}

inline bool PollWorld::needs_caution(const Partition& partition) const {
  const Beginning& beginning = partition.beginning();
  const std::size_t enough = std::min<std::size_t>(2 * ground_.lanes * ground_.batch, 1000);
  const bool is_empty = partition.polling.at_end && partition.progress().messages == 0;
  const std::int64_t moved = partition.checkpointed() - beginning.offset;
  return beginning.started_runs > 1 && beginning.offset < beginning.log_end &&
         partition.handler_runs() < enough && !is_empty && !partition.over() &&
         moved < static_cast<std::int64_t>(ground_.queue);
}

// Caution that has ended does not come again.
inline void PollWorld::watch_caution() {
  for (const TopicPartition& id : ids_)
    if (const auto partition = running(id); partition && seen_running_.insert(&*partition).second)
      cautious_.insert(partition.get());
  std::erase_if(cautious_, [&](const Partition* one) { return !needs_caution(*one); });
}

inline void PollWorld::check_caution(const Batch& batch) {
  const Partition* const partition = batch.works.front().partition.get();
  hold(batch.cautious == cautious_.contains(partition),
       std::string(batch.cautious ? "a message runs alone without need: "
                                  : "a message that may kill does not run alone: ") +
           name(partition->id()));
  if (!batch.cautious) return;
  ++reached_["taken in caution"];
  std::size_t busy = 0;
  for (const auto& lane : lanes_) busy += lane.has_value();
  hold(busy == 1 && batch.works.size() == 1 && batch.works.front().items.size() == 1,
       "a message that may kill does not run alone");
}

inline bool PollWorld::is_done(const TopicPartition& id) {
  const Row& row = keeper_.rows[id];
  const Log& log = kafka_.logs.at(id);
  const auto partition = running(id);
  return partition && row.made == log.made && row.next == log.end && log.committed == row.next &&
         partition->progress().watermark == log.end;
}

}  // namespace hapax::worker::poll_simulation
