#include "worker/checkpointer.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "flow/crash_point.hpp"
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
      checkpoint(held_.all());
      find_fenced();
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

void Checkpointer::checkpoint(const HeldPartitions::List& partitions) {
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
    if (writes.empty()) return;
    store::Session& session = session_.get();
    flow::crash_point("checkpoint_begun");
    std::optional<store::WalPosition> position;
    const auto written = store::write_checkpoints(session, setup_.group, writes,
                                                  asks_position ? &position : nullptr);
    flow::crash_point("checkpointed");
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      if (written.contains(dirty[i]->id())) {
        if (position && dirty[i]->seen_wal()) dirty[i]->saw(*position);
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
  for (const auto& partition : lost) missed(partition);
}

// Some partitions write no checkpoint that could miss. They are idle, or all their messages wait
// because PostgreSQL lost commits. An operator may move their epochs, too, so this reads them.
void Checkpointer::find_fenced() {
  const HeldPartitions::List partitions = held_.all();
  if (partitions.empty() || postgres_.is_down()) return;
  HeldPartitions::List fenced;
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
  for (const auto& partition : fenced) missed(partition);
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

void Checkpointer::missed(const std::shared_ptr<Partition>& partition) {
  const bool by_another = taken_by_another(*partition);
  if (held_.remove(partition)) notices_.post(Fenced{partition, by_another});
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
  if (!release.partitions.empty()) checkpoint(release.partitions);
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
