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

// The start is not decided: whether this record still stands in the log shall be looked at first.
// Then the partition is acquired again.
struct LookWanted {
  std::shared_ptr<Partition> partition;
  ReadRecord record;
};

// A halt of this partition, for which the caller has a reason.
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

// Somebody has ended the halt: take the partition again.
struct HaltEnded {
  TopicPartition partition;
};

// The checkpoint could not be written: the partition was taken, moved by an operator, or
// PostgreSQL lost its tail. Drop it and take it again from its checkpoint row.
struct Fenced {
  std::shared_ptr<Partition> partition;
  bool by_another = false;  // another worker has it: give it time to be ours or theirs
};

// The group is stable, and nobody has this one and perhaps others: it must assign anew.
struct NobodyHas {
  TopicPartition partition;
};

// The partition may read another log than it began with: take it again.
struct LogDoubted {
  std::shared_ptr<Partition> partition;
};

// The topic was made again, and this librdkafka's memory is damaged by that.
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
