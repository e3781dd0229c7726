#include "outbox/outbound_topic.hpp"

#include <algorithm>

namespace hapax::outbox {

// The statement leaves out the records in hand. A cursor behind them would not be enough, because a
// record may become visible below it, and the next record of its key above it.
void OutboundTopic::ask(const std::string& name, store::OutboxStep& step) {
  const auto& in_hand = stream_->in_hand();
  if (!stream_->takes_rows() || in_hand.size() > step.most_rows ||
      stream_->bytes_in_hand() > step.most_bytes)
    return;
  low_water_.mark();
  step.topics.emplace(name, mark());
  for (const auto& [id, bytes] : in_hand) step.in_hand.push_back(id);
}

std::int64_t OutboundTopic::mark() const {
  const std::int64_t mark = low_water_.last_mark();
  if (stream_->is_empty()) return mark;
  return std::min(mark, stream_->in_hand().begin()->first - 1);
}

void OutboundTopic::take(std::vector<store::OutboxRow> rows, const std::string& name,
                         const store::OutboxStep& step, const store::OutboxRead& read) {
  std::size_t bytes = 0;
  for (const store::OutboxRow& row : rows) bytes += row.bytes;
  has_more_ = rows.size() >= step.most_rows || bytes >= step.most_bytes;
  const std::int64_t mark = step.topics.at(name);
  const auto newest = read.newest.find(name);
  const std::int64_t upto = has_more_                     ? rows.back().id
                            : newest == read.newest.end() ? mark
                                                          : std::max(mark, newest->second);
  low_water_.read(upto, read.writers);
  stream_->offer(std::move(rows));
}

}  // namespace hapax::outbox
