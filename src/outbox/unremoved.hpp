// What Kafka has and PostgreSQL does not know yet: settled batches, and acknowledged records that
// must be removed. If this relay dies, its successor sends such records again.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "outbox/stream.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class Unremoved {
 public:
  void add(const std::string& topic, const Stream::News& news);
  bool is_empty() const { return acknowledged_.empty() && settled_.empty(); }
  // `more_comes`: an answer of Kafka may come soon, and can be written together with these.
  bool is_due(bool more_comes) const;
  void put_into(store::OutboxStep& step) const;
  // PostgreSQL holds what put_into() added last.
  void written();
  void forget();

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::pair<std::string, std::int64_t>> acknowledged_;  // topic and id
  std::vector<store::SettledBatch> settled_;
  Clock::time_point since_{};  // the oldest in acknowledged_
};

}  // namespace hapax::outbox
