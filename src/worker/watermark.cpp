#include "worker/watermark.hpp"

#include <algorithm>

#include "worker/check.hpp"

namespace hapax::worker {

bool Watermark::receive(const Seen& record, Time at) {
  if (record.offset < next_) return false;
  waiting_.push_back({record, false, at});
  next_ = record.offset + 1;
  return true;
}

void Watermark::settle(std::int64_t offset) {
  // Without holes an offset's index is its distance from the first; with holes it is smaller.
  const auto place = std::clamp<std::int64_t>(offset - value(), 0, std::ssize(waiting_));
  auto entry = waiting_.begin() + place;
  if (entry == waiting_.end() || entry->offset() != offset)
    entry = std::ranges::lower_bound(waiting_.begin(), entry, offset, {}, &Entry::offset);
  if (entry == waiting_.end() || entry->offset() != offset) {
    HAPAX_CHECK(offset < value(), "an offset was settled that was never received");
    return;
  }
  entry->settled = true;
  highest_settled_ = std::max(highest_settled_, offset + 1);
  for (; !waiting_.empty() && waiting_.front().settled; waiting_.pop_front())
    last_below_ = waiting_.front().record;
}

void Watermark::pass(std::int64_t offset) {
  next_ = std::max(next_, offset);
  if (waiting_.empty()) highest_settled_ = std::max(highest_settled_, next_);
}

}  // namespace hapax::worker
