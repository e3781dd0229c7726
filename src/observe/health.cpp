#include "observe/health.hpp"

#include <utility>

#include "observe/service_manager.hpp"

namespace hapax::observe {
namespace {

// An unknown lag may hide work, unless the worker reports that it has seen the end.
bool nothing_to_do(const PartitionReport& report) {
  const bool at_end = report.lag ? *report.lag == 0 : report.state == PartitionState::idle;
  return report.in_flight == 0 && at_end;
}

}  // namespace

Health::Health(HealthBounds bounds, Now now)
    : bounds_(bounds), now_(std::move(now)), poll_turned_(now_()) {}

void Health::poll_turned() {
  poll_turned_.store(now_(), std::memory_order_relaxed);
  service_manager::alive();
}

void Health::started() {
  const sync::Lock lock(mutex_);
  board_.started = true;
}

void Health::draining() {
  service_manager::stopping();
  const sync::Lock lock(mutex_);
  board_.draining = true;
}

void Health::fatal(std::string_view reason) {
  const sync::Lock lock(mutex_);
  if (!board_.fatal) board_.fatal = std::string(reason);
}

void Health::consumes_nothing() {
  const sync::Lock lock(mutex_);
  board_.consumes = false;
}

void Health::joined() {
  service_manager::ready("a member of the group");
  const sync::Lock lock(mutex_);
  board_.joined = true;
  board_.group_error.clear();
  board_.kafka_reachable = true;
}

void Health::refused_by_group(std::string_view why) {
  service_manager::ready("waiting for the group: " + std::string(why));
  const sync::Lock lock(mutex_);
  board_.group_error = why;
}

void Health::waits_for_topics(std::string_view why) {
  const sync::Lock lock(mutex_);
  board_.kafka_reachable = true;
  board_.group_error = why;
}

void Health::left() {
  const sync::Lock lock(mutex_);
  board_.joined = false;
}

void Health::kafka_reachable(bool reachable, std::string_view why) {
  const sync::Lock lock(mutex_);
  board_.kafka_reachable = reachable;
  board_.kafka_error = why;
}

void Health::postgres(bool up, bool writable, std::string_view error_class) {
  const TimePoint now = now_();
  const sync::Lock lock(mutex_);
  const auto& before = board_.postgres;
  const bool same = before && before->up == up && before->writable == writable;
  board_.postgres =
      PostgresFacts{up, writable, std::string(error_class), same ? before->since : now};
}

void Health::partition_assigned(std::string_view topic, std::int32_t partition) {
  const TimePoint now = now_();
  const sync::Lock lock(mutex_);
  board_.partitions[{std::string(topic), partition}] = PartitionFacts{{}, now};
}

void Health::partition_report(std::string_view topic, std::int32_t partition,
                              PartitionReport report) {
  const TimePoint now = now_();
  const sync::Lock lock(mutex_);
  const auto found = board_.partitions.find({std::string(topic), partition});
  if (found == board_.partitions.end()) return;
  PartitionFacts& facts = found->second;
  // Work that has just come is given its whole time, however long the partition was idle before.
  if (report.watermark != facts.report.watermark || nothing_to_do(facts.report))
    facts.last_advance = now;
  facts.report = std::move(report);
}

void Health::partition_gone(std::string_view topic, std::int32_t partition) {
  const sync::Lock lock(mutex_);
  board_.partitions.erase({std::string(topic), partition});
}

HealthBoard Health::copy() const {
  const sync::Lock lock(mutex_);
  HealthBoard board = board_;
  board.poll_turned = poll_turned_.load(std::memory_order_relaxed);
  return board;
}

// The clock is read after the copy, so that nothing on the board is from the future.
Verdict Health::live() const {
  const HealthBoard board = copy();
  return judge_live(board, now_(), bounds_);
}

Verdict Health::ready() const {
  const HealthBoard board = copy();
  return judge_ready(board, now_(), bounds_);
}

}  // namespace hapax::observe
