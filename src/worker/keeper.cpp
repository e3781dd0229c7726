#include "worker/keeper.hpp"

#include <algorithm>

#include "flow/crash_point.hpp"
#include "key/identity.hpp"
#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

}  // namespace

Keeper::Keeper(KeeperSetup setup, kafka::Consumer& consumer, Notices& notices,
               PostgresState& postgres, observe::Metrics& metrics)
    : setup_(std::move(setup)),
      consumer_(consumer),
      notices_(notices),
      postgres_(postgres),
      metrics_(metrics) {}

Keeper::~Keeper() = default;

void Keeper::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  starts_ = std::jthread([this](const std::stop_token& stop) { run_starts(stop); });
}

void Keeper::stop() {
  starts_ = {};
  thread_ = {};
}

void Keeper::acquire(const std::vector<std::shared_ptr<Partition>>& partitions,
                     milliseconds after) {
  const std::lock_guard lock(mutex_);
  for (const auto& partition : partitions)
    if (std::ranges::find(wanted_, partition, &Wanted::partition) == wanted_.end())
      wanted_.push_back({partition, steady_clock::now() + after});
  woken_.notify_all();
}

std::string Keeper::store_id() const {
  const std::lock_guard lock(mutex_);
  return store_.id;
}

std::string Keeper::cluster_id() const {
  const std::lock_guard lock(mutex_);
  return cluster_id_;
}

void Keeper::run(const std::stop_token& stop) {
  auto next_checkpoint = steady_clock::now() + setup_.checkpoint_interval;
  while (!stop.stop_requested()) {
    busy_since_ = steady_clock::now();
    serve_release();
    if (steady_clock::now() >= next_checkpoint) {
      next_checkpoint = steady_clock::now() + setup_.checkpoint_interval;
      checkpoint(held());
      find_fenced();
      look_for_postgres();
    }
    serve_halts();
    busy_since_ = steady_clock::time_point::max();
    std::unique_lock lock(mutex_);
    woken_.wait_until(lock, stop, next_checkpoint, [&] { return halt_is_new_ || release_; });
  }
}

std::vector<std::shared_ptr<Partition>> Keeper::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Partition>> partitions;
  for (const auto& [id, partition] : held_) partitions.push_back(partition);
  return partitions;
}

std::map<TopicPartition, std::int64_t> Keeper::held_epochs() const {
  std::map<TopicPartition, std::int64_t> epochs;
  for (const auto& partition : held()) epochs[partition->id()] = partition->beginning().epoch;
  return epochs;
}

void Keeper::checkpoint(const std::vector<std::shared_ptr<Partition>>& partitions) {
  std::vector<std::shared_ptr<Partition>> lost;
  const auto began = steady_clock::now();
  try {
    std::vector<store::CheckpointWrite> writes;
    std::vector<std::shared_ptr<Partition>> dirty;
    for (const auto& partition : partitions) {
      const std::int64_t watermark = partition->progress().watermark;
      if (watermark <= partition->checkpointed()) continue;
      dirty.push_back(partition);
      writes.push_back({partition->id(), partition->beginning().incarnation,
                        partition->beginning().epoch, partition->checkpointed(), watermark});
    }
    if (writes.empty()) return;
    store::Session& session = this->session(session_);
    flow::crash_point("checkpoint_begun");
    const auto written = store::write_checkpoints(session, setup_.group, writes);
    flow::crash_point("checkpointed");
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      if (written.contains(dirty[i]->id())) {
        dirty[i]->checkpointed(writes[i].next_offset);
      } else {
        lost.push_back(dirty[i]);
      }
    }
    metrics_.checkpoint_ended(
        lost.empty() ? observe::CheckpointResult::written : observe::CheckpointResult::fenced,
        steady_clock::now() - began);
  } catch (const store::DatabaseError& error) {
    session_.reset();
    metrics_.checkpoint_ended(observe::CheckpointResult::failed, steady_clock::now() - began);
    broke("writing checkpoints", error);
    // Written or not: where it was, the next one does not find the value written last, and the
    // partition is taken again from its row.
    lost.clear();
  }
  for (const auto& partition : lost) missed(partition);
}

// An operator moves the epochs of idle partitions too, which write no checkpoint that could miss;
// nor does one whose messages all wait because PostgreSQL lost its tail.
void Keeper::find_fenced() {
  const std::vector<std::shared_ptr<Partition>> partitions = held();
  if (partitions.empty() || postgres_.is_down()) return;
  std::vector<std::shared_ptr<Partition>> fenced;
  try {
    const auto held = store::read_held(session(session_), setup_.group, setup_.worker_name);
    for (const auto& partition : partitions) {
      const Beginning& beginning = partition->beginning();
      const auto found = held.find(partition->id());
      if (found == held.end() || found->second.epoch != beginning.epoch ||
          found->second.incarnation != beginning.incarnation)
        fenced.push_back(partition);
    }
  } catch (const store::DatabaseError& error) {
    session_.reset();
    broke("reading epochs", error);
  }
  for (const auto& partition : fenced) missed(partition);
}

// A checkpoint that found no row to write: the row says why. Not known where PostgreSQL is away:
// then it is as if another had it. The session may be one to a server that has been replaced.
bool Keeper::taken_by_another(const Partition& partition) {
  for (const bool last_try : {false, true}) {
    try {
      const auto row = store::read_checkpoint(session(session_), setup_.group, partition.id());
      return row && row->epoch != partition.beginning().epoch && row->owner &&
             *row->owner != setup_.worker_name;
    } catch (const store::DatabaseError&) {
      session_.reset();
      if (last_try) break;
    }
  }
  return true;
}

void Keeper::missed(const std::shared_ptr<Partition>& partition) {
  const bool by_another = taken_by_another(*partition);
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(partition->id());
    if (found == held_.end() || found->second != partition) return;
    held_.erase(found);
  }
  notices_.post(Fenced{partition, by_another});
}

bool Keeper::release(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle,
                     milliseconds timeout) {
  const auto release = std::make_shared<Release>();
  release->idle = idle;
  std::unique_lock lock(mutex_);
  for (const auto& partition : partitions) {
    const auto found = held_.find(partition->id());
    if (found != held_.end() && found->second == partition)
      release->partitions.push_back(partition);
    halted_.erase(partition->id());
  }
  bool answered = false;
  if (!postgres_.is_down()) {
    release_ = release;
    woken_.notify_all();
    answered = released_.wait_for(lock, timeout, [&] { return release->done; });
    if (!answered) release_.reset();
  }
  for (const auto& partition : release->partitions) held_.erase(partition->id());
  lock.unlock();
  if (!answered && !postgres_.is_down())
    postgres_.went_down("giving partitions back", "",
                        "no answer for " + std::to_string(timeout.count()) + " ms");
  return answered;
}

void Keeper::serve_release() {
  std::shared_ptr<Release> release;
  {
    const std::lock_guard lock(mutex_);
    release = std::exchange(release_, nullptr);
  }
  if (!release) return;
  leave(release->partitions, release->idle);
  const std::lock_guard lock(mutex_);
  release->done = true;
  released_.notify_all();
}

void Keeper::leave(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle) {
  if (!partitions.empty()) checkpoint(partitions);
  if (postgres_.is_down()) return;
  try {
    // A halt that was only logged would be forgotten, and what it stops run again.
    for (const store::Halt& halt : unrecorded())
      store::open_halt(session(session_), setup_.group, halt);
    if (!idle) return;  // what still runs may settle beyond what would be written here
    std::vector<store::Leaving> leaving;
    for (const auto& partition : partitions)
      leaving.push_back({partition->id(), partition->beginning().epoch,
                         partition->beginning().incarnation,
                         partition->progress().highest_settled});
    store::leave_partitions(session(session_), setup_.group, std::move(leaving));
  } catch (const store::DatabaseError&) {
    session_.reset();
  }
}

store::Taking Keeper::taking_of(const Partition& partition) const {
  return {setup_.group,
          partition.id(),
          setup_.worker_name,
          key::spec_digest(partition.route().key),
          partition.route().key.scope,
          0};
}

}  // namespace hapax::worker
