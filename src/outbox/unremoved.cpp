#include "outbox/unremoved.hpp"

#include <utility>

#include "flow/crash_point.hpp"
#include "outbox/make_stream.hpp"

namespace hapax::outbox {
namespace {

// An acknowledged record is removed so much later at most.
constexpr auto kRemove = std::chrono::milliseconds(50);

}  // namespace

void Unremoved::add(const std::string& topic, const Stream::News& news) {
  if (acknowledged_.empty()) since_ = Clock::now();
  for (const std::int64_t id : news.delivered) acknowledged_.emplace_back(topic, id);
  if (news.settled) settled_.push_back(*news.settled);
}

bool Unremoved::is_due(bool more_comes) const {
  if (!settled_.empty()) return true;
  return !acknowledged_.empty() &&
         (acknowledged_.size() >= kPortionRows || !more_comes || Clock::now() - since_ > kRemove);
}

void Unremoved::put_into(store::OutboxStep& step) const {
  step.acknowledged = acknowledged_;
  step.settled = settled_;
}

void Unremoved::written() {
  if (!std::exchange(acknowledged_, {}).empty()) flow::crash_point("outbox_removed");
  if (!std::exchange(settled_, {}).empty()) flow::crash_point("outbox_batch_settled");
}

void Unremoved::forget() {
  acknowledged_.clear();
  settled_.clear();
}

}  // namespace hapax::outbox
