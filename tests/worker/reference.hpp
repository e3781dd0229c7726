// Knows what must be true of flow, waits and watermarks, in the plainest way: it is a list of all
// received messages with their states. The simulation asks it after each step.
//
// It knows the promises, and nothing of how the dispatcher, the watermark and the lanes keep them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flow/outcome.hpp"
#include "flow/processor.hpp"
#include "steps.hpp"
#include "worker/dispatcher.hpp"

namespace hapax::worker::simulation {

using std::chrono::milliseconds;
using Time = Clock::time_point;

// Of the `n`-th message of a work.
inline std::int64_t offset_of(const Work& work, std::size_t n) {
  return std::next(work.items.begin(), static_cast<std::ptrdiff_t>(n))->record->message().offset();
}

struct Known {
  enum class Place { queued, running, settled };

  std::int64_t offset = 0;
  std::uint64_t order_key = 0;
  std::size_t bytes = 0;
  int attempts = 0;
  int outages = 0;
  int agains = 0;
  Time earliest{};  // does not run before
  Time latest{};    // is ready from here on
  Place place = Place::queued;
};

// One assignment of one partition.
struct Assignment {
  std::string name;
  std::size_t route = 0;
  std::int64_t next = 0;
  std::int64_t highest_settled = 0;
  bool over = false;
  int works = 0;                     // of it that lanes have
  std::vector<Known> messages = {};  // all that it received, ascending

  Known& at(std::int64_t offset) {
    const auto found = std::ranges::find(messages, offset, &Known::offset);
    hold(found != messages.end(), name + " has never received offset " + std::to_string(offset));
    return *found;
  }
  // Those of an order key that are not settled, in order.
  std::vector<Known*> unsettled(std::uint64_t order_key) {
    std::vector<Known*> found;
    for (Known& known : messages)
      if (known.order_key == order_key && known.place != Known::Place::settled)
        found.push_back(&known);
    return found;
  }
  std::vector<const Known*> unsettled() const {
    std::vector<const Known*> found;
    for (const Known& known : messages)
      if (known.place != Known::Place::settled) found.push_back(&known);
    return found;
  }
  std::set<std::uint64_t> running() const {
    std::set<std::uint64_t> order_keys;
    for (const Known& known : messages)
      if (known.place == Known::Place::running) order_keys.insert(known.order_key);
    return order_keys;
  }
  std::int64_t watermark() const {
    const auto open = unsettled();
    return open.empty() ? next : open.front()->offset;
  }
};

class Reference {
 public:
  explicit Reference(std::array<std::size_t, 2> batch) : batch_(batch) {}

  bool stopped = false;

  bool is_cautious() const { return cautious_ != nullptr; }
  // The dispatcher does not promise turns across a change of caution.
  void set_cautious(const Partition* about) {
    cautious_ = about;
    passed_over_.clear();
  }

  Assignment& assign(const Partition* partition, Assignment assignment) {
    return assignments_[partition] = std::move(assignment);
  }
  Assignment& of(const Partition& partition) { return assignments_.at(&partition); }

  void drop(const Partition& partition) {
    of(partition).over = true;
    std::erase_if(passed_over_, [&](const auto& entry) { return entry.first.first == &partition; });
  }

  void receive(const Partition& partition, Known known) {
    Assignment& assignment = of(partition);
    assignment.next = known.offset + 1;
    assignment.messages.push_back(known);
  }

  void pass(const Partition& partition, std::int64_t end) {
    Assignment& assignment = of(partition);
    assignment.next = std::max(assignment.next, end);
    if (assignment.unsettled().empty())
      assignment.highest_settled = std::max(assignment.highest_settled, assignment.next);
  }

  // A free lane asked for messages and got these, or none.
  void take(const std::optional<Batch>& batch, std::size_t limit, Time now) {
    if (!batch) {
      hold(stopped || ((suspect_ready(now) || alone_) && running() > 0) || ready(now).empty(),
           "a free lane gets nothing, although a message could run");
      return;
    }
    hold(!stopped, "messages are handed out after stop()");
    hold(!batch->works.empty(), "a batch of nothing");
    for (const Work& work : batch->works)
      hold(batch->cautious == (work.partition.get() == cautious_),
           "a batch does not know whether it is cautious");
    hold(!(batch->cautious || alone_) || running() == 0, "two messages run in cautious mode");
    alone_ = batch->cautious;
    const std::size_t route = batch->works.front().partition->route_index();
    const std::size_t room = batch->cautious ? 1 : std::min(limit, batch_.at(route));
    std::size_t taken = 0;
    for (const Work& work : batch->works) {
      hold(work.partition->route_index() == route, "a batch of two routes");
      take(work, now);
      taken += work.items.size();
    }
    hold(taken <= room, "a batch is larger than it may be");
    for (const Strand& strand : ready(now)) {
      hold(taken == room || assignments_.at(strand.first).route != route ||
               strand.first == cautious_ ||
               ready_elsewhere([&](auto& other) { return other.route != route; }, now),
           "a batch has room, but leaves a message of its route behind");
      for (const Work& work : batch->works) pass_over(strand, work);
    }
    hold(taken == room || behind_taken(*batch, now) == 0,
         "a batch has room, but leaves behind the next message of an order key in it");
  }

  // A lane that has `current` asked for one more, and got it, or none.
  void prefetch(const Work& current, const std::optional<Work>& work, Time now) {
    const std::vector<Known*> line = of(*current.partition).unsettled(current.order_key);
    const Known* const behind = line.size() > 1 ? line[1] : nullptr;
    if (!work) {
      const bool refused = stopped || suspect_ready(now) || alone_;
      const bool of_batches = ready_elsewhere([&](auto& a) { return batch_.at(a.route) > 1; }, now);
      hold(refused || of_batches || ready(now).empty(),
           "a lane gets nothing to go on with, although a message could run");
      const bool goes_on = behind != nullptr && behind->latest <= now &&
                           !of(*current.partition).over && current.partition.get() != cautious_ &&
                           batch_.at(current.partition->route_index()) == 1;
      hold(refused || !goes_on || ready_elsewhere([](auto&) { return true; }, now),
           "a lane gets nothing to go on with, although its order key has a message");
      return;
    }
    hold(!stopped && !alone_ && work->partition.get() != cautious_,
         "a lane gets more than it may have now");
    hold(work->items.size() == 1 && batch_.at(work->partition->route_index()) == 1,
         "a lane gets a batch to go on with");
    const bool its_own =
        work->partition == current.partition && work->order_key == current.order_key;
    if (!its_own) {
      take(*work, now);
      for (const Strand& strand : ready(now)) pass_over(strand, *work);
      return;
    }
    hold(ready(now).empty(), "an order key goes on though another is ready");
    const Item& item = work->items.front();
    hold(behind != nullptr && behind->place == Known::Place::queued &&
             behind->offset == item.record->message().offset() && behind->earliest <= now &&
             item.attempts == behind->attempts,
         "a lane goes on with another message than the next of its order key");
    line[1]->place = Known::Place::running;
    ++of(*work->partition).works;
  }

  // A lane does not run what it took to go on with.
  void put_back(const Work& work) {
    Assignment& assignment = of(*work.partition);
    --assignment.works;
    assignment.at(work.items.front().record->message().offset()).place = Known::Place::queued;
  }

  struct Ended {
    std::vector<std::int64_t> settled = {};
    bool postgres_away = false;
    bool contended = false;
    std::optional<std::int64_t> halts_at = std::nullopt;
  };
  // A lane is through with it, with these outcomes.
  Ended end(const Work& work, std::span<const flow::Outcome> outcomes, Time now) {
    Assignment& assignment = of(*work.partition);
    --assignment.works;
    std::size_t at = 0;
    Ended ended;
    for (; at < outcomes.size() && flow::is_settled(outcomes[at].result); ++at) {
      ended.settled.push_back(offset_of(work, at));
      assignment.at(ended.settled.back()).place = Known::Place::settled;
      assignment.highest_settled = std::max(assignment.highest_settled, ended.settled.back() + 1);
    }
    for (std::size_t i = at; i < outcomes.size(); ++i)
      assignment.at(offset_of(work, i)).place = Known::Place::queued;
    if (at == outcomes.size()) return ended;
    Known& first = assignment.at(offset_of(work, at));
    ended.postgres_away = outcomes[at].result == flow::Result::outage;
    if (flow::is_halt(outcomes[at].result)) ended.halts_at = first.offset;
    wait(first, outcomes[at], now);
    if (first.outages > 0) lost_[{work.partition->id(), first.offset}] = first.outages;
    ended.contended = first.agains >= kMostAgains;
    return ended;
  }

  // Order keys that lanes have.
  std::size_t running() const {
    std::size_t count = 0;
    for (const auto& [partition, assignment] : assignments_) count += assignment.running().size();
    return count;
  }

  struct Load {
    std::size_t queued = 0;
    std::size_t never_waiting = 0;  // order keys in line that were never told to wait
    std::size_t surely_waiting = 0;
    std::size_t maybe_ready = 0;
  };
  Load load(Time now) {
    Load load;
    for (auto& [partition, assignment] : assignments_) {
      if (assignment.over) continue;
      for (const Known& known : assignment.messages)
        load.queued += known.place == Known::Place::queued;
      for (const Known* first : in_line(assignment)) {
        load.never_waiting += first->earliest == Time{};
        load.surely_waiting += first->earliest > now;
        load.maybe_ready += first->earliest <= now;
      }
    }
    return load;
  }

  // The latest time at which the next waiting message is ready; Time::max() if there is none.
  Time next_due() {
    Time due = Time::max();
    for (auto& [partition, assignment] : assignments_)
      if (!assignment.over)
        for (const Known* first : in_line(assignment)) due = std::min(due, first->latest);
    return due;
  }

 private:
  const Partition* cautious_ = nullptr;  // about this one
  static constexpr int kMostAgains = 20;
  using Strand = std::pair<const Partition*, std::uint64_t>;

  // The first of each order key that no lane has.
  static std::vector<Known*> in_line(Assignment& assignment) {
    const std::set<std::uint64_t> running = assignment.running();
    std::set<std::uint64_t> seen;
    std::vector<Known*> firsts;
    for (Known& known : assignment.messages)
      if (known.place == Known::Place::queued && !running.contains(known.order_key) &&
          seen.insert(known.order_key).second)
        firsts.push_back(&known);
    return firsts;
  }

  std::vector<Strand> ready(Time now) {
    std::vector<Strand> strands;
    for (auto& [partition, assignment] : assignments_)
      if (!assignment.over)
        for (const Known* first : in_line(assignment))
          if (first->latest <= now) strands.emplace_back(partition, first->order_key);
    return strands;
  }

  // One that caution is about may be ready.
  bool suspect_ready(Time now) {
    const auto found = assignments_.find(cautious_);
    return found != assignments_.end() && !found->second.over &&
           std::ranges::any_of(in_line(found->second),
                               [&](const Known* first) { return first->earliest <= now; });
  }

  void pass_over(const Strand& ready, const Work& taken) {
    if (cautious_ != nullptr) return;
    hold(passed_over_[ready].insert({taken.partition.get(), taken.order_key}).second,
         "an order key is taken twice while another is ready");
  }

  // Whether one of these may be between: a wait that is drawn at random may be over.
  template <class Which>
  bool ready_elsewhere(const Which& which, Time now) {
    for (auto& [partition, assignment] : assignments_)
      if (!assignment.over && which(assignment))
        for (const Known* first : in_line(assignment))
          if (first->earliest <= now) return true;
    return false;
  }

  void take(const Work& work, Time now) {
    Assignment& assignment = of(*work.partition);
    hold(!assignment.over, "a message of a dropped partition is handed out");
    const std::vector<Known*> line = assignment.unsettled(work.order_key);
    hold(!work.items.empty() && work.items.size() <= line.size(),
         "other messages are handed out than there are");
    auto known = line.begin();
    for (const Item& item : work.items) {
      Known& next = **known++;
      const std::int64_t offset = item.record->message().offset();
      const std::string what = assignment.name + " offset " + std::to_string(offset);
      hold(next.place == Known::Place::queued, what + ": its order key runs on two lanes");
      hold(next.offset == offset,
           what + " runs before " + std::to_string(next.offset) + ", which is of its order key");
      hold(next.earliest <= now, what + " runs before its time");
      // In an assignment before: known again, unless its lane was not through with it.
      const auto before = lost_.find({work.partition->id(), offset});
      if (before != lost_.end() && item.outages == before->second) next.outages = item.outages;
      hold(item.attempts == next.attempts && item.outages == next.outages &&
               item.agains == next.agains,
           what + " has forgotten how often it failed");
    }
    for (std::size_t i = 0; i < work.items.size(); ++i) line[i]->place = Known::Place::running;
    passed_over_.erase({work.partition.get(), work.order_key});
    ++assignment.works;
  }

  // Messages that could have come along behind the last of a work.
  std::size_t behind_taken(const Batch& batch, Time now) {
    std::size_t count = 0;
    for (const Work& work : batch.works) {
      const std::vector<Known*> line = of(*work.partition).unsettled(work.order_key);
      if (line.size() > work.items.size()) count += line[work.items.size()]->latest <= now;
    }
    return count;
  }

  static void wait(Known& known, const flow::Outcome& outcome, Time now) {
    using flow::Result;
    if (outcome.result == Result::retry) known.attempts = outcome.attempts;
    known.outages = outcome.result == Result::retry ? std::min(known.outages, flow::kMaxOutages - 1)
                                                    : known.outages + outcome.lost_in_handler;
    known.agains = outcome.result == Result::again ? known.agains + 1 : 0;
    known.earliest = known.latest = now + outcome.wait;
    if (flow::is_halt(outcome.result)) known.earliest = known.latest = Time::max();
    if (known.agains == 0) return;
    known.earliest = now + milliseconds(known.agains < kMostAgains ? 1 : 1000);
    known.latest = now + milliseconds(known.agains < kMostAgains ? 7 * known.agains : 1000);
  }

  std::array<std::size_t, 2> batch_;
  std::map<const Partition*, Assignment> assignments_;
  std::map<std::pair<TopicPartition, std::int64_t>, int> lost_;  // connections, by offset
  bool alone_ = false;                                           // what was taken last is
  std::map<Strand, std::set<Strand>> passed_over_;  // ready order keys: who was taken instead
};

}  // namespace hapax::worker::simulation
