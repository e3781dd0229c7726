// Decides which message runs next, on any lane. Messages of one order key run in sequence, and
// order keys run side by side.
//
// A strand is the queue of one order key of one partition. One lane at a time has messages of it:
// the first ones, or the first and later the second to go on with. If a message waits (for a retry,
// for a held key), its strand waits, but no lane and no connection does. Ready strands take turns,
// so a hot key does not starve the others.
//
// Only take() reads the clock. The other functions are given the time, so tests can set it.
//
// Thread safety: all of it, from any thread; no lock is held while a message runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "flow/task.hpp"
#include "kafka/record.hpp"
#include "sync/mutex.hpp"
#include "worker/partition.hpp"

namespace hapax::worker {

using Clock = std::chrono::steady_clock;

// A message in hand, with what this process has seen of it.
struct Item {
  std::unique_ptr<kafka::Record> record;
  std::unique_ptr<payload::ReadMessage> read = {};  // decoded, while a lane has it
  int attempts = 0;                                 // failed runs, from PostgreSQL
  int outages = 0;                                  // connections lost while it ran
  int agains = 0;                                   // runs again at once, in a row
  bool in_doubt = false;                            // a transaction with it may have been committed
  // The partition's epoch when a cautious run was announced that could not be withdrawn.
  std::optional<std::int64_t> announced = {};
  int crashes = 0;                       // given up after so many crashes, and not written yet
  bool remembered = false;               // in hapax.attempts when its partition started
  std::chrono::milliseconds failing{0};  // from the first failed run to the last before it came
  Clock::time_point not_before{};        // it waits until then as the first of its order key
  Clock::time_point received{};          // from Kafka; nothing once it has run
  Clock::time_point waits_since{};       // busy since then, in a row; nothing: it is not
  bool wait_told = false;                // in the log
  // Of an outside route:
  bool for_lane = false;                   // it is answered, or needs no call
  std::optional<flow::Answered> answered;  // to be booked
};

// The first messages of one order key, which a lane runs now, in order.
struct Work {
  std::shared_ptr<Partition> partition;
  std::uint64_t order_key = 0;
  std::list<Item> items;
  std::size_t settled = 0;  // how many of the first are settled, when the lane gives it back
};

// What a lane takes at once: messages of one route.
struct Batch {
  std::vector<Work> works;
  bool cautious = false;  // it is one message, and nothing else runs in this process
};

class Dispatcher {
 public:
  // Queues a message after the others of its order key.
  void add(std::shared_ptr<Partition> partition, std::uint64_t order_key, Item item);

  // The next messages that may run: ready messages of the first ready order key's route, at most
  // that route's batch and at most `limit`. Nothing: stop() was called.
  // Blocks: until there is one message, or stop(). It never waits for more.
  std::optional<Batch> take(std::size_t limit);

  // The same with messages that may run at `now`. Nothing: there is none, or stop() was called.
  std::optional<Batch> take_now(std::size_t limit, Clock::time_point now);

  // One more message for the lane that has `current`. It is the next that may run at `now`. If none
  // is ready, it is the one after `current` in its order key. Nothing if there is none, if its
  // route has batches, in caution, or after stop(). Precondition: `current` was taken alone. If
  // `current` settles, the lane runs the new message. If not, it first gives the new one back
  // unrun, and then `current`.
  std::optional<Work> prefetch(const Work& current, Clock::time_point now);

  // Messages of outside routes whose calls are to be made: the first of their order keys, each
  // alone, at most `room(route index)` of each route. Empty if there is none now.
  struct Calls {
    std::vector<Work> works;
    bool cautious = false;  // it is one message, and nothing else runs in this process
  };
  Calls take_calls(const std::function<std::size_t(std::size_t)>& room);

  // Blocks: until take_calls() may return something, until wake_calls(), or until `until`.
  void wait_for_calls(Clock::time_point until);
  void wake_calls();

  // Tells whether calls can be made now. If not, messages that wait for their calls hold up no
  // lane, even in caution. At first they can.
  void let_calls_run(bool may);

  // Gives back what was taken; Work::settled tells how many messages of it are settled. The others
  // stay first of their order key, in order. `not_before` of the first of them tells when they run
  // again.
  void finish(std::vector<Work> works);

  // Drops all queued messages of a partition. Messages that run go on; see wait_idle(). If
  // connections were lost while a message ran, that is remembered until the message comes again.
  void drop(Partition& partition);

  // Waits until no lane runs a message of these. False at the deadline.
  // Precondition: drop() was called for each.
  bool wait_idle(const std::vector<std::shared_ptr<Partition>>& partitions,
                 Clock::time_point until);

  // The same for all messages, also of partitions that this worker no longer has.
  bool wait_all_idle(Clock::time_point until);

  // Sets the partitions that caution is about. While a message of theirs runs, no other message
  // runs in this process. So if the process dies, no other message is blamed. These messages take
  // turns with the others, so neither keeps the other from running. Empty: caution ends. A message
  // that was taken alone stays alone to its end.
  void set_cautious(std::vector<std::shared_ptr<Partition>> about);

  // Every take() returns nothing from now on.
  void stop();

  // Whether more messages may run than there are free lanes.
  bool has_ready() const;

  struct Load {
    std::size_t queued = 0;   // messages that no lane runs
    std::size_t waiting = 0;  // of these: order keys that wait for their time
  };
  Load load() const;

  // The message at `offset`, if it alone keeps the watermark there. Then it waits for a retry, and
  // the lanes keep up with all other messages of its partition. Otherwise nothing.
  struct Blocking {
    int attempts = 0;
    std::optional<std::string> record_key;
  };
  std::optional<Blocking> blocking(const Partition& partition, std::int64_t offset) const;

 private:
  enum class State { ready, running, waiting };
  struct StrandId {
    Partition* partition;
    std::uint64_t order_key;
    bool operator==(const StrandId&) const = default;
  };
  struct StrandHash {
    std::size_t operator()(const StrandId& id) const {
      return std::hash<const void*>()(id.partition) ^ id.order_key;
    }
  };
  struct Strand {
    std::shared_ptr<Partition> partition;
    std::list<Item> items;  // most have one: a deque would take 600 bytes for it
    State state = State::ready;
    int taken = 0;  // works of it that its lane has
  };
  using Strands = std::unordered_map<StrandId, Strand, StrandHash>;
  using Entry = Strands::value_type;  // its address stays the same while the map grows

  using Coordinates = std::tuple<TopicPartition, std::int32_t, std::int64_t>;
  static Coordinates coordinates_of(const Partition& partition, std::int64_t offset);
  // What this process remembers of a message that comes again, as in Item.
  struct Lost {
    int outages = 0;
    std::optional<std::int64_t> announced = {};
  };
  Lost take_lost(const Partition& partition, const Item& item) HAPAX_REQUIRES(mutex_);
  void keep_lost(const Partition& partition, const std::list<Item>& items) HAPAX_REQUIRES(mutex_);

  // The strands that are ready for the lanes, or for calls.
  struct Line {
    std::deque<Entry*> ready;
    std::deque<Entry*> suspects;  // ready ones of partitions that caution is about
    std::condition_variable work_there;
  };

  bool is_suspect(const Entry& entry) const HAPAX_REQUIRES(mutex_);
  static bool is_to_call(const Entry& entry);
  Line& line_of(const Entry& entry) HAPAX_REQUIRES(mutex_) {
    return is_to_call(entry) ? calls_ : lanes_;
  }
  bool none_ready() const HAPAX_REQUIRES(mutex_) {
    return lanes_.ready.empty() && (!calls_may_run_ || calls_.ready.empty());
  }
  bool suspects_there() const HAPAX_REQUIRES(mutex_) {
    return !lanes_.suspects.empty() || (calls_may_run_ && !calls_.suspects.empty());
  }
  void wake_all() HAPAX_REQUIRES(mutex_);
  Work take_suspect(Line& line, Clock::time_point now) HAPAX_REQUIRES(mutex_);
  void line_up(Entry& entry) HAPAX_REQUIRES(mutex_);
  void make_ready(Entry& entry) HAPAX_REQUIRES(mutex_);
  void ready_the_due(Clock::time_point now) HAPAX_REQUIRES(mutex_);
  std::optional<Batch> take_locked(std::size_t limit, Clock::time_point now) HAPAX_REQUIRES(mutex_);
  Entry& entry_of(const Work& work) HAPAX_REQUIRES(mutex_);
  Work take_from(Entry& entry, std::size_t limit, Clock::time_point now) HAPAX_REQUIRES(mutex_);
  void finish_locked(Work& work) HAPAX_REQUIRES(mutex_);

  mutable sync::Mutex mutex_;
  std::condition_variable idle_;
  Line lanes_ HAPAX_GUARDED_BY(mutex_);
  Line calls_ HAPAX_GUARDED_BY(mutex_);
  bool calls_woken_ HAPAX_GUARDED_BY(mutex_) = false;
  bool calls_may_run_ HAPAX_GUARDED_BY(mutex_) = true;
  Strands strands_ HAPAX_GUARDED_BY(mutex_);
  // Of messages whose partition was dropped.
  std::map<Coordinates, Lost> lost_ HAPAX_GUARDED_BY(mutex_);
  // How many others are taken before the next suspect.
  int others_turns_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::multimap<Clock::time_point, Entry*> waiting_ HAPAX_GUARDED_BY(mutex_);
  std::size_t queued_ HAPAX_GUARDED_BY(mutex_) = 0;
  int running_ HAPAX_GUARDED_BY(mutex_) = 0;  // works that lanes and calls have
  std::vector<std::shared_ptr<Partition>> cautious_ HAPAX_GUARDED_BY(mutex_);
  // Whether the last taken message runs alone. It does so to its end, even if caution ends before.
  bool alone_ HAPAX_GUARDED_BY(mutex_) = false;
  bool stopped_ HAPAX_GUARDED_BY(mutex_) = false;
};

}  // namespace hapax::worker
