// The world's part that compares what can be seen of the real thing with the Reference.
#pragma once

#include "world.hpp"

namespace hapax::worker::simulation {

inline void World::check() {
  for (const auto& partition : partitions_) check_partition(partition);
  const Reference::Load expected = reference_.load(now_);
  const Dispatcher::Load load = dispatcher_.load();
  hold(load.queued == expected.queued, "the dispatcher counts " + std::to_string(load.queued) +
                                           " queued messages, there are " +
                                           std::to_string(expected.queued));
  hold(load.waiting >= expected.surely_waiting &&
           load.waiting <= expected.surely_waiting + expected.maybe_ready - expected.never_waiting,
       "the dispatcher counts " + std::to_string(load.waiting) + " order keys that wait");
  hold(dispatcher_.has_ready() || expected.never_waiting == 0, "what is ready is not seen");
  hold(!dispatcher_.has_ready() || expected.maybe_ready > 0, "nothing is ready, yet it is said");
}

inline void World::check_partition(const std::shared_ptr<Partition>& partition) {
  const Assignment& assignment = reference_.of(*partition);
  const auto open = assignment.unsettled();
  std::size_t bytes = 0;
  for (const Known* known : open) bytes += known->bytes;
  const Partition::Progress progress = partition->progress();
  const auto same = [&](auto found, auto expected, const char* what) {
    hold(std::cmp_equal(found, expected), assignment.name + ": " + what + " is " +
                                              std::to_string(found) + ", not " +
                                              std::to_string(expected));
  };
  same(progress.watermark, assignment.watermark(), "the watermark");
  same(progress.next, assignment.next, "the next offset");
  same(progress.highest_settled, assignment.highest_settled, "the highest settled offset");
  same(progress.messages, open.size(), "the number of messages in hand");
  same(progress.bytes, bytes, "the number of bytes in hand");
  const std::ptrdiff_t span = std::ranges::count_if(
      assignment.messages, [&](const Known& k) { return k.offset >= assignment.watermark(); });
  same(progress.span, span, "the span of offsets in hand");
  const int running = assignment.works;
  same(partition->dispatching.running, running, "the number of works that lanes have");
  if (assignment.over)
    hold(dispatcher_.wait_idle({partition}, {}) == (running == 0),
         assignment.name + ": whether a dropped partition is idle is not known");
  else
    check_blocking(*partition);
}

inline void World::check_blocking(const Partition& partition) {
  Assignment& assignment = reference_.of(partition);
  const std::int64_t watermark = assignment.watermark();
  const auto blocking = dispatcher_.blocking(partition, watermark);
  const auto open = assignment.unsettled();
  if (blocking) {
    hold(!open.empty() && open.front()->place == Known::Place::queued &&
             open.front()->attempts == blocking->attempts && blocking->attempts > 0,
         assignment.name + ": what is said to block it does not");
  } else if (!open.empty() && open.front()->earliest > now_ && open.front()->attempts > 0 &&
             open.front()->place == Known::Place::queued &&
             assignment.unsettled(open.front()->order_key).size() == open.size()) {
    throw Broken(assignment.name + ": what blocks it is not seen");
  }
}

inline Reference::Ended World::expect_end(const Work& work,
                                          std::span<const flow::Outcome> outcomes) {
  const Partition& partition = *work.partition;
  Reference::Ended ended = reference_.end(work, outcomes, now_);
  expect_breaks(work, outcomes.first(ended.settled.size()));
  if (ended.halts_at)
    wanted_.push_back({&partition,
                       outcomes[ended.settled.size()].result == flow::Result::halt_route,
                       ended.halts_at});
  if (ended.contended) ++reached_["contended for long"];
  if (partition.over()) ++reached_["ended after its partition was dropped"];
  return ended;
}

// So many dead letters in a row for one cause halt the route.
inline void World::expect_breaks(const Work& work, std::span<const flow::Outcome> settled) {
  const std::size_t route = work.partition->route_index();
  auto& [cause, count, open] = given_up_[route];
  for (const flow::Outcome& outcome : settled) {
    if (outcome.result == flow::Result::completed) count = 0;
    if (outcome.result != flow::Result::failed || outcome.reason != "rejected") continue;
    hold(!open, "a message is given up on behind an open breaker");
    const std::string why = outcome.detail.substr(0, outcome.detail.rfind(' '));
    count = why == cause ? count + 1 : 1;
    cause = why;
    if (routes_[route].breaker == 0 || count < routes_[route].breaker) continue;
    count = 0;
    open = true;
    wanted_.push_back({work.partition.get(), true, std::nullopt});
    ++reached_["breaker"];
  }
}

}  // namespace hapax::worker::simulation
