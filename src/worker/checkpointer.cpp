#include "worker/checkpointer.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::worker {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Checkpointer::Checkpointer(const KeeperSetup& setup, HeldPartitions& held, HaltWatch& halts,
                           Notices& notices, PostgresState& postgres, observe::Metrics& metrics)
    : setup_(setup),
      held_(held),
      halts_(halts),
      notices_(notices),
      postgres_(postgres),
      metrics_(metrics),
      session_(setup.connect, postgres) {}

void Checkpointer::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Checkpointer::wake() {
  const sync::Lock lock(mutex_);
  halt_is_new_ = true;
  woken_.notify_all();
}

steady_clock::duration Checkpointer::silence() const {
  const steady_clock::duration silent = steady_clock::now() - busy_since_.load();
  return std::max(silent, steady_clock::duration::zero());
}

void Checkpointer::run(const std::stop_token& stop) {
  auto next_checkpoint = steady_clock::now() + setup_.checkpoint_interval;
  while (!stop.stop_requested()) {
    busy_since_ = steady_clock::now();
    serve_release();
    if (steady_clock::now() >= next_checkpoint) {
      next_checkpoint = steady_clock::now() + setup_.checkpoint_interval;
      HeldPartitions::List lost = checkpoint(held_.all());
      find_fenced(lost);
      missed(lost);
      session_.look_for_postgres();
    }
    serve_halts();
    busy_since_ = steady_clock::time_point::max();
    sync::Lock lock(mutex_);
    woken_.wait_until(lock.waitable(), stop, next_checkpoint,
                      [&]() HAPAX_REQUIRES(mutex_) { return halt_is_new_ || release_; });
  }
}

void Checkpointer::serve_halts() {
  {
    const sync::Lock lock(mutex_);
    halt_is_new_ = false;
  }
  try {
    halts_.serve(session_);
  } catch (const store::DatabaseError& error) {
    session_.broke("reading halts", error);
  }
}

// Returns the partitions whose row was not theirs any more.
HeldPartitions::List Checkpointer::checkpoint(const HeldPartitions::List& partitions) {
  HeldPartitions::List lost;
  const auto began = steady_clock::now();
  try {
    std::vector<store::CheckpointWrite> writes;
    HeldPartitions::List dirty;
    bool asks_position = false;
    for (const auto& partition : partitions) {
      const auto [watermark, last_record] = partition->reached();
      if (watermark <= partition->checkpointed()) continue;
      dirty.push_back(partition);
      asks_position = asks_position || partition->seen_wal();
      writes.push_back({partition->id(), partition->beginning().incarnation,
                        partition->beginning().epoch, partition->checkpointed(), watermark,
                        key::is_by_position(partition->route().key),
                        last_record ? last_record->text() : ""});
    }
    if (writes.empty()) return lost;
    store::Session& session = session_.get();
    flow::crash_point("checkpoint_begun");
    std::optional<store::WalPosition> position;
    const auto written = store::write_checkpoints(session, setup_.group, writes,
                                                  asks_position ? &position : nullptr);
    flow::crash_point("checkpointed");
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      if (written.contains(dirty[i]->id())) {
        if (position && dirty[i]->seen_wal())
          dirty[i]->saw({*position, dirty[i]->beginning().incarnation});
        dirty[i]->checkpointed(writes[i].next_offset);
      } else {
        lost.push_back(dirty[i]);
      }
    }
    metrics_.checkpoint_ended(
        lost.empty() ? observe::CheckpointResult::written : observe::CheckpointResult::fenced,
        steady_clock::now() - began);
  } catch (const store::DatabaseError& error) {
    metrics_.checkpoint_ended(observe::CheckpointResult::failed, steady_clock::now() - began);
    session_.broke("writing checkpoints", error);
    // The write may have committed. If so, the next checkpoint does not match, and the partition
    // starts again from its row.
    lost.clear();
  }
  return lost;
}

// Some partitions write no checkpoint that could miss. They are idle, or all their messages wait
// because PostgreSQL lost commits. An operator may move their epochs, too, so this reads them. Adds
// those that are fenced.
void Checkpointer::find_fenced(HeldPartitions::List& fenced) {
  HeldPartitions::List partitions = held_.all();
  std::erase_if(partitions, [&](const auto& one) { return std::ranges::count(fenced, one) > 0; });
  if (partitions.empty() || postgres_.is_down()) return;
  try {
    const auto held = store::read_held(session_.get(), setup_.group, setup_.worker_name);
    for (const auto& partition : partitions) {
      const Beginning& beginning = partition->beginning();
      const auto found = held.find(partition->id());
      if (found == held.end() || found->second.epoch != beginning.epoch ||
          found->second.incarnation != beginning.incarnation)
        fenced.push_back(partition);
    }
  } catch (const store::DatabaseError& error) {
    session_.broke("reading epochs", error);
  }
}

// The partitions that were fenced only because PostgreSQL was restarted. It has recovered from no
// crash and was not promoted, and it still has the checkpoints that were written last. None if it
// does not answer, which may mean anything.
std::set<TopicPartition> Checkpointer::restarted(const HeldPartitions::List& partitions) {
  std::map<TopicPartition, store::Held> held;
  try {
    held = store::read_held(session_.get(), setup_.group, setup_.worker_name);
  } catch (const store::DatabaseError&) {
    session_.drop();
    return {};
  }
  std::set<TopicPartition> restarted;
  for (const auto& partition : partitions) {
    const Beginning& beginning = partition->beginning();
    const auto found = held.find(partition->id());
    if (found == held.end() || found->second.epoch != beginning.epoch) continue;
    const store::Held& now = found->second;
    const bool was_restarted = now.incarnation != beginning.incarnation;
    const bool lost_nothing = !now.unlogged_id.empty() && now.unlogged_id == beginning.unlogged_id;
    if (was_restarted && lost_nothing && now.next_offset >= partition->checkpointed())
      restarted.insert(partition->id());
  }
  return restarted;
}

// Called if a checkpoint found no row to write. The row shows who has the partition. If PostgreSQL
// does not answer, this assumes that another worker has it. The session may lead to a server that
// was replaced, so it tries a new one.
bool Checkpointer::taken_by_another(const Partition& partition) {
  for (const bool last_try : {false, true}) {
    try {
      const auto row = store::read_checkpoint(session_.get(), setup_.group, partition.id());
      return row && row->epoch != partition.beginning().epoch && row->owner &&
             *row->owner != setup_.worker_name;
    } catch (const store::DatabaseError&) {
      session_.drop();
      if (last_try) break;
    }
  }
  return true;
}

void Checkpointer::missed(const HeldPartitions::List& partitions) {
  if (partitions.empty()) return;
  const std::set<TopicPartition> by_restart = restarted(partitions);
  for (const auto& partition : partitions) {
    const bool is_restart = by_restart.contains(partition->id());
    const bool by_another = !is_restart && taken_by_another(*partition);
    if (held_.remove(partition)) notices_.post(Fenced{partition, by_another, is_restart});
  }
  if (!by_restart.empty())
    observe::log::info("postgres_restarted", {{"partitions", by_restart.size()}},
                       "PostgreSQL was restarted, and has the checkpoints that were written last; "
                       "partitions start again from them");
}

bool Checkpointer::release(const HeldPartitions::List& partitions, bool idle,
                           milliseconds timeout) {
  const auto release = std::make_shared<Release>();
  release->idle = idle;
  std::ranges::copy_if(partitions, std::back_inserter(release->partitions),
                       [&](const auto& partition) { return held_.has(partition); });
  bool answered = false;
  if (!postgres_.is_down()) {
    sync::Lock lock(mutex_);
    release_ = release;
    woken_.notify_all();
    answered = released_.wait_for(lock.waitable(), timeout,
                                  [&]() HAPAX_REQUIRES(mutex_) { return served_ == release; });
    release_.reset();
    served_.reset();
  }
  for (const auto& partition : release->partitions) held_.remove(partition);
  if (!answered && !postgres_.is_down())
    postgres_.went_down("giving partitions back", "",
                        "no answer for " + std::to_string(timeout.count()) + " ms");
  return answered;
}

void Checkpointer::serve_release() {
  std::shared_ptr<const Release> release;
  {
    const sync::Lock lock(mutex_);
    release = std::exchange(release_, nullptr);
  }
  if (!release) return;
  leave(*release);
  const sync::Lock lock(mutex_);
  served_ = std::move(release);
  released_.notify_all();
}

namespace {

// Messages that may have begun count, too, because under another key they could run again.
std::int64_t settled_below(const Partition& partition) {
  const std::int64_t begun_below = partition.begun_below();
  const Partition::Progress progress = partition.progress();
  return progress.watermark < begun_below ? std::max(progress.highest_settled, begun_below)
                                          : progress.highest_settled;
}

}  // namespace

void Checkpointer::leave(const Release& release) {
  if (!release.partitions.empty()) missed(checkpoint(release.partitions));
  if (postgres_.is_down()) return;
  try {
    // If the halt is not recorded, it is forgotten, and the messages that it stops would run.
    halts_.record(session_);
    if (!release.idle) return;  // messages that still run may settle later than this write
    std::vector<store::Leaving> leaving;
    for (const auto& partition : release.partitions)
      leaving.push_back({partition->id(), partition->beginning().epoch,
                         partition->beginning().incarnation, settled_below(*partition)});
    store::leave_partitions(session_.get(), setup_.group, std::move(leaving));
  } catch (const store::DatabaseError&) {
    session_.drop();
  }
}

}  // namespace hapax::worker
