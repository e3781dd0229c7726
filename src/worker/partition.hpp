// One assignment of one partition to this worker, from its agreed start to its end.
//
// If a partition is taken again, it gets a new object. So a message of the old assignment that
// completes late changes only the old object, whose watermark is not used any more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flow/route.hpp"
#include "store/worker/checkpoints.hpp"
#include "sync/mutex.hpp"
#include "worker/read_record.hpp"
#include "worker/watermark.hpp"

namespace hapax::worker {

using store::TopicPartition;

// Orders partitions, and finds them without making a string.
struct PartitionOrder {
  using is_transparent = void;
  template <class Left, class Right>
  bool operator()(const Left& left, const Right& right) const {
    const int order = std::string_view(left.first).compare(std::string_view(right.first));
    return order != 0 ? order < 0 : left.second < right.second;
  }
};

// PostgreSQL's position, as this process has seen it.
struct SeenWal {
  store::WalPosition position;
  std::string incarnation;  // of PostgreSQL at that time
  // The epoch of that run of the partition, if the group has taken the partition away since.
  std::optional<std::int64_t> left = {};
  bool operator==(const SeenWal&) const = default;
};

// What the start agreed on. The keeper writes it once, before another thread uses the partition.
struct Beginning {
  std::int64_t epoch = 0;
  std::string incarnation;        // of PostgreSQL, when the start was agreed
  std::string unlogged_id;        // likewise; see store::StoreIdentity
  std::string topic_id;           // empty: this librdkafka cannot tell
  bool has_kafka_offset = false;  // the group had one, or has it since
  std::int32_t generation = 1;
  std::int64_t offset = 0;
  std::int64_t log_end = 0;         // as it was then
  std::int64_t settled_before = 0;  // see settled_before() in start.hpp
  std::int64_t guard_below = 0;     // guarantees I8
  std::int64_t doubt_below = 0;     // PostgreSQL may have forgotten calls (docs/outside.md)
  std::int64_t same_topic = 0;      // see CheckpointRow
  int started_runs = 0;             // 2 or more: the last ended before they got anywhere
  store::KnownMessages known;       // failed runs and skips from before
};

class Partition {
 public:
  Partition(TopicPartition id, const flow::Route& route, std::size_t route_index)
      : id_(std::move(id)), route_(route), route_index_(route_index) {}

  const TopicPartition& id() const { return id_; }
  const flow::Route& route() const { return route_; }
  std::size_t route_index() const { return route_index_; }

  // Owned by the poll thread. The keeper has it from KeeperInterface::acquire() until it posts
  // Started, LookWanted or HaltWanted.
  struct Handover {
    // This worker read the log up to here in the assignment before, so the log must hold it.
    std::int64_t read_below = 0;
    // Records that were read before, ascending: the last below the checkpoint, and the last that
    // this process read. The start reads them again first. If they have changed, Kafka has lost the
    // end of the log, or the topic was made again.
    std::vector<ReadRecord> read_before;
    // Since when Kafka's log has seemed to end below `read_below`, or below the checkpoint.
    std::optional<std::chrono::steady_clock::time_point> short_since;
    // The look at a record for which the start asked.
    std::optional<RecordLook> look;
    std::optional<SeenWal> seen_wal;  // in an assignment before
  };
  Handover handover;

  // Owned by the poll thread.
  struct Polling {
    bool started = false;  // its start is agreed; from here on everything may be used
    std::optional<ReadRecord> looks_for;  // before it starts: only this one is fetched
    bool paused = false;
    bool too_far = false;  // paused because it was as far ahead of its watermark as it may be
    std::optional<std::int64_t> blocked;  // an episode: paused for a retry of this offset
    bool at_end = false;                  // the last thing that came was the end of the partition
    std::int32_t leader_epoch = -1;
    std::optional<ReadRecord> last;  // the last one received
    std::int64_t checkpoint = -1;    // as its report saw it last
    // Since when settled messages are above this checkpoint, and it has not moved.
    std::chrono::steady_clock::time_point checkpoint_due{};
    std::string refused;   // why Kafka does not let us read it; empty: it does
    std::string told_wal;  // PostgreSQL's position, as of our last successful commit
  };
  Polling polling;

  // Owned by the dispatcher, under its lock.
  struct Dispatching {
    int running = 0;  // works of this partition that lanes have
  };
  Dispatching dispatching;

  // The keeper calls it once, before it posts Started. Before that, use only id, route, delayed,
  // over and the structs with an owner.
  void begin(Beginning beginning) {
    beginning_ = std::move(beginning);
    const sync::Lock lock(mutex_);
    watermark_.emplace(beginning_.offset, beginning_.settled_before);
    checkpointed_ = beginning_.offset;
  }
  const Beginning& beginning() const { return beginning_; }

  // False if the offset is in hand already.
  bool receive(std::int64_t offset, std::size_t bytes, Watermark::Time at = {},
               std::optional<std::int64_t> timestamp_ms = {}) {
    const sync::Lock lock(mutex_);
    if (!watermark_->receive({offset, timestamp_ms, bytes}, at)) return false;
    bytes_ += bytes;
    ++messages_;
    return true;
  }

  struct Settled {
    std::int64_t offset;
    std::size_t bytes;
  };
  void settle(std::span<const Settled> messages) {
    const sync::Lock lock(mutex_);
    for (const Settled& message : messages) {
      watermark_->settle(message.offset);
      bytes_ -= message.bytes;
      if (wait_ && wait_->first == message.offset) wait_.reset();
    }
    messages_ -= messages.size();
  }

  void pass(std::int64_t offset) {
    const sync::Lock lock(mutex_);
    watermark_->pass(offset);
  }

  struct Progress {
    std::int64_t watermark = 0;
    std::int64_t next = 0;
    std::int64_t highest_settled = 0;
    std::size_t span = 0;      // offsets from the watermark on, settled out of order included
    std::size_t messages = 0;  // received and not settled
    std::size_t bytes = 0;
    std::optional<Watermark::Time> waiting_since;  // see Watermark
  };
  Progress progress() const {
    const sync::Lock lock(mutex_);
    return {watermark_->value(),        watermark_->next(), watermark_->highest_settled(),
            watermark_->span(),         messages_,          bytes_,
            watermark_->waiting_since()};
  }

  // The next checkpoint, and the last record below it, if one was read. Any thread.
  struct Reached {
    std::int64_t watermark = 0;
    std::optional<ReadRecord> last_record;
  };
  Reached reached() const {
    const sync::Lock lock(mutex_);
    Reached reached{watermark_->value(), {}};
    if (const auto& last = watermark_->last_below())
      reached.last_record =
          ReadRecord{beginning_.generation, last->offset, last->timestamp_ms, last->bytes};
    return reached;
  }

  // The checkpoint that PostgreSQL has; Kafka's offset follows it. Any thread.
  std::int64_t checkpointed() const { return checkpointed_; }
  void checkpointed(std::int64_t offset) { checkpointed_ = offset; }

  // Kafka's offset, as of our last successful commit; -1: there was none. Any thread.
  std::int64_t committed() const { return committed_; }
  void committed(std::int64_t offset) { committed_ = offset; }

  // Only of a route that calls to the outside. Any thread.
  std::optional<SeenWal> seen_wal() const {
    const sync::Lock lock(mutex_);
    return seen_wal_;
  }
  // Several threads see positions, so an older one may come late.
  void saw(SeenWal seen) {
    const sync::Lock lock(mutex_);
    if (seen_wal_ && seen_wal_->incarnation == seen.incarnation &&
        seen.position.is_older_than(seen_wal_->position))
      return;
    seen_wal_ = std::move(seen);
  }

  // Why its start is not agreed yet; empty: not known. Any thread.
  std::string delayed() const {
    const sync::Lock lock(mutex_);
    return delayed_;
  }
  void delayed(const std::string& why) {
    const sync::Lock lock(mutex_);
    delayed_ = why;
  }

  // A sentence that tells for what the lowest message waits that waits, and not for a retry. Empty:
  // none does. Any thread.
  std::string waits_for() const {
    const sync::Lock lock(mutex_);
    return wait_ ? wait_->second : std::string();
  }
  void set_waits_for(std::int64_t offset, const std::string& why) {
    const sync::Lock lock(mutex_);
    if (why.empty() && wait_ && wait_->first == offset) wait_.reset();
    if (!why.empty() && (!wait_ || offset <= wait_->first)) wait_.emplace(offset, why);
  }

  // Whether the assignment is over. Then queued messages are dropped, and the outcomes of messages
  // that still run are ignored.
  bool over() const { return over_; }
  void end() { over_ = true; }

  // Call it if a message that is not settled may have begun to take effect. Perhaps a transaction
  // with it was committed, or another system was called. Any thread.
  void may_have_begun(std::int64_t offset) {
    auto below = begun_below_.load();
    while (below <= offset && !begun_below_.compare_exchange_weak(below, offset + 1)) continue;
  }
  // No message at this offset or above may have begun. 0: none at all.
  std::int64_t begun_below() const { return begun_below_; }

  // How many handlers came back, and took effect or will be retried. Any thread.
  std::size_t handler_runs() const { return handler_runs_; }
  void count_handler_run() { ++handler_runs_; }

 private:
  const TopicPartition id_;
  const flow::Route& route_;
  const std::size_t route_index_;
  Beginning beginning_;
  mutable sync::Mutex mutex_;
  std::optional<Watermark> watermark_ HAPAX_GUARDED_BY(mutex_);
  std::size_t messages_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::string delayed_ HAPAX_GUARDED_BY(mutex_);
  std::optional<std::pair<std::int64_t, std::string>> wait_ HAPAX_GUARDED_BY(mutex_);
  std::optional<SeenWal> seen_wal_ HAPAX_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> checkpointed_{0};
  std::atomic<std::int64_t> committed_{-1};
  std::atomic<bool> over_{false};
  std::atomic<std::int64_t> begun_below_{0};
  std::atomic<std::size_t> handler_runs_{0};
};

}  // namespace hapax::worker
