// What lanes and the keeper tell the poll thread: a small mailbox.
//
// Thread safety: all of it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/worker/checkpoints.hpp"
#include "sync/mutex.hpp"
#include "worker/partition.hpp"

namespace hapax::worker {

// A partition's start is agreed: fetch it.
struct Started {
  std::shared_ptr<Partition> partition;
};

// The start is not decided. The poll thread first looks whether this record is still in the log,
// and then acquires the partition again.
struct LookWanted {
  std::shared_ptr<Partition> partition;
  ReadRecord record;
};

// A halt of this partition. The caller adds the reason.
inline store::Halt halt_of(const Partition& partition, const std::string& worker) {
  return {.topic = partition.id().first,
          .partition = partition.id().second,
          .generation = partition.beginning().generation,
          .halted_by = worker};
}

// A partition must stop. If `recorded` is false, the halt must still be recorded.
struct HaltWanted {
  std::shared_ptr<Partition> partition;
  store::Halt halt;
  bool recorded = false;
};

// An operator has ended the halt: take the partition again.
struct HaltEnded {
  TopicPartition partition;
};

// The checkpoint could not be written: another worker took the partition, an operator moved it, or
// PostgreSQL lost commits. Drop it, and take it again from its checkpoint row.
struct Fenced {
  std::shared_ptr<Partition> partition;
  bool by_another = false;  // another worker has it: wait until the group has decided whose it is
  bool by_restart = false;  // of PostgreSQL, which still has the checkpoint
};

// The group is stable, but no member has this partition, and perhaps others. The group must assign
// again.
struct NobodyHas {
  TopicPartition partition;
};

// The partition may read another log than it began with: take it again.
struct LogDoubted {
  std::shared_ptr<Partition> partition;
};

// The topic was made again, which damages the memory of this version of librdkafka.
struct ClientBroken {
  std::string topic;
};

using Notice = std::variant<Started, LookWanted, HaltWanted, HaltEnded, Fenced, NobodyHas,
                            LogDoubted, ClientBroken>;

class Notices {
 public:
  void post(Notice notice) {
    const sync::Lock lock(mutex_);
    waiting_.push_back(std::move(notice));
  }
  std::vector<Notice> take() {
    const sync::Lock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  sync::Mutex mutex_;
  std::vector<Notice> waiting_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::worker
