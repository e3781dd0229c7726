// Records halts as soon as PostgreSQL answers, and watches them until an operator ends them.
//
// Thread safety: all of it but serve() and record(), which one thread calls.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/worker/checkpoints.hpp"
#include "sync/mutex.hpp"
#include "worker/held_partitions.hpp"
#include "worker/keeper_session.hpp"
#include "worker/notices.hpp"

namespace hapax::worker {

class HaltWatch {
 public:
  HaltWatch(std::string group, const HeldPartitions& held, Notices& notices)
      : group_(std::move(group)), held_(held), notices_(notices) {}

  // `recorded`: the halt is in PostgreSQL already.
  void add(const store::Halt& halt, bool recorded);

  // The group has taken the partition away, so this worker does not wait for the end of its halt.
  void forget(const TopicPartition& id);

  std::vector<store::Halt> unrecorded() const;

  // Records new halts. Posts HaltEnded for those that an operator has ended, and HaltWanted for
  // partitions whose route another worker halted. Throws: DatabaseError.
  void serve(KeeperSession& session);

  // Records new halts, at the worker's end. Throws: DatabaseError.
  void record(KeeperSession& session);

 private:
  const std::string group_;
  const HeldPartitions& held_;
  Notices& notices_;

  mutable sync::Mutex mutex_;
  std::vector<store::Halt> to_record_ HAPAX_GUARDED_BY(mutex_);
  std::map<TopicPartition, store::Halt> halted_ HAPAX_GUARDED_BY(mutex_);  // recorded, not ended
};

}  // namespace hapax::worker
