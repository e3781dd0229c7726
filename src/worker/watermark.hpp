// How far a partition is settled: the lowest received offset that is not settled yet.
//
// Offsets have holes (compaction, control records), so what was received is kept, never
// "previous + 1". The same offset may come twice, and lower ones may come again.
//
// Thread safety: none; the Partition that owns it locks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace hapax::worker {

class Watermark {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Nothing below `start` will be taken. `settled_before`: one more than the highest offset that
  // may have been settled earlier.
  explicit Watermark(std::int64_t start, std::int64_t settled_before = 0)
      : next_(start), highest_settled_(std::max(start, settled_before)) {}

  // What of a record is remembered until a checkpoint has passed it.
  struct Seen {
    std::int64_t offset = 0;
    std::optional<std::int64_t> timestamp_ms;
    std::size_t bytes = 0;
  };

  // False if the offset was received before (or is below the start): it is in hand already.
  bool receive(std::int64_t offset, Time at = {}) { return receive(Seen{offset, {}, 0}, at); }
  bool receive(const Seen& record, Time at);

  // Precondition: the offset was received. Settling twice is fine.
  void settle(std::int64_t offset);

  // Nothing more is in the log below `offset` (the end of the partition, control records passed).
  void pass(std::int64_t offset);

  // Everything below is settled. Never goes back.
  std::int64_t value() const { return waiting_.empty() ? next_ : waiting_.front().offset(); }

  // The last record below value() that was received; nothing: none was.
  const std::optional<Seen>& last_below() const { return last_below_; }

  // The next offset to fetch: one more than the highest received.
  std::int64_t next() const { return next_; }

  // One more than the highest settled offset, out of order included.
  std::int64_t highest_settled() const { return highest_settled_; }

  // When the message at value() was received; nothing: all that was received is settled.
  std::optional<Time> waiting_since() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().received);
  }

  // Received offsets from value() on, settled or not: what memory it takes.
  std::size_t span() const { return waiting_.size(); }

 private:
  struct Entry {
    Seen record;
    bool settled;
    Time received;

    std::int64_t offset() const { return record.offset; }
  };
  std::deque<Entry> waiting_;  // ascending; the front is never settled
  std::optional<Seen> last_below_;
  std::int64_t next_;
  std::int64_t highest_settled_;
};

}  // namespace hapax::worker
