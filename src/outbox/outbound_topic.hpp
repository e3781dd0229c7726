// One topic that the relay writes: its records on their way, and the id behind which it reads on.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outbox/endings.hpp"
#include "outbox/low_water.hpp"
#include "outbox/stream.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class OutboundTopic {
 public:
  explicit OutboundTopic(std::unique_ptr<Stream, EndsLater> stream) : stream_(std::move(stream)) {}

  Stream& stream() { return *stream_; }
  const Stream& stream() const { return *stream_; }

  // Adds this topic to those that `step` reads, if it has room for a portion. `name` is its own.
  void ask(const std::string& name, store::OutboxStep& step);
  // `rows`: what `step` has read of it.
  void take(std::vector<store::OutboxRow> rows, const std::string& name,
            const store::OutboxStep& step, const store::OutboxRead& read);
  // Whether the last read reached its bound, so there may be more.
  bool has_more() const { return has_more_; }
  // The id behind which it has records that were not removed.
  std::int64_t mark() const;
  // Records that the mark has passed may be sent now, so reads all again.
  void read_all_again() { low_water_.reset(); }

 private:
  std::unique_ptr<Stream, EndsLater> stream_;
  LowWater low_water_;
  bool has_more_ = false;
};

}  // namespace hapax::outbox
