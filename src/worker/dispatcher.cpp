#include "worker/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "worker/check.hpp"

namespace hapax::worker {
namespace {

// Enough for all lanes to be busy between two suspects.
constexpr int kOthersTurns = 16;

}  // namespace

void Dispatcher::add(std::shared_ptr<Partition> partition, std::uint64_t order_key, Item item) {
  const sync::Lock lock(mutex_);
  if (partition->over()) return;
  if (!lost_.empty()) {
    const Lost lost = take_lost(*partition, item);
    item.outages = lost.outages;
    item.announced = lost.announced;
  }
  const auto [found, is_new] = strands_.try_emplace({partition.get(), order_key});
  Strand& strand = found->second;
  strand.items.push_back(std::move(item));
  ++queued_;
  if (!is_new) return;
  strand.partition = std::move(partition);
  line_up(*found);
}

// Messages arrive in offset order, so entries below it are settled.
Dispatcher::Lost Dispatcher::take_lost(const Partition& partition, const Item& item) {
  const Coordinates here = coordinates_of(partition, item.record->message().offset());
  auto lost = lost_.lower_bound(coordinates_of(partition, 0));
  Lost its;
  for (; lost != lost_.end() && lost->first <= here; lost = lost_.erase(lost))
    if (lost->first == here) its = lost->second;
  return its;
}

void Dispatcher::keep_lost(const Partition& partition, const std::list<Item>& items) {
  for (const Item& item : items)
    if (item.outages > 0 || item.announced)
      lost_[coordinates_of(partition, item.record->message().offset())] = {item.outages,
                                                                           item.announced};
}

Dispatcher::Coordinates Dispatcher::coordinates_of(const Partition& partition,
                                                   std::int64_t offset) {
  return {partition.id(), partition.beginning().generation, offset};
}

// Makes the strand ready, or lets it wait until its first message may run. Precondition: it has a
// message, and no lane has one of it.
void Dispatcher::line_up(Entry& entry) {
  const Clock::time_point not_before = entry.second.items.front().not_before;
  if (not_before == Clock::time_point{}) return make_ready(entry);
  entry.second.state = State::waiting;
  const auto due = waiting_.emplace(not_before, &entry);
  // This strand is due first, so threads that sleep until a later time must sleep again. All are
  // woken, because a single one could be busy with other work when the strand is due.
  if (due == waiting_.begin()) wake_all();
}

void Dispatcher::wake_all() {
  calls_woken_ = true;
  lanes_.work_there.notify_all();
  calls_.work_there.notify_all();
}

bool Dispatcher::is_to_call(const Entry& entry) {
  const Strand& strand = entry.second;
  return strand.partition->route().outside && !strand.items.front().for_lane;
}

void Dispatcher::make_ready(Entry& entry) {
  entry.second.state = State::ready;
  Line& line = line_of(entry);
  (is_suspect(entry) ? line.suspects : line.ready).push_back(&entry);
  line.work_there.notify_one();
  calls_woken_ = calls_woken_ || &line == &calls_;
}

void Dispatcher::ready_the_due(Clock::time_point now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    Entry& due = *waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    make_ready(due);
  }
}

std::optional<Batch> Dispatcher::take(std::size_t limit) {
  sync::Lock lock(mutex_);
  for (;;) {
    std::optional<Batch> batch = take_locked(limit, Clock::now());
    if (batch || stopped_) return batch;
    if (waiting_.empty() || !lanes_.ready.empty() || !lanes_.suspects.empty()) {
      lanes_.work_there.wait(lock.waitable());
    } else {
      lanes_.work_there.wait_until(lock.waitable(), Clock::time_point(waiting_.begin()->first));
    }
  }
}

std::optional<Batch> Dispatcher::take_now(std::size_t limit, Clock::time_point now) {
  const sync::Lock lock(mutex_);
  return take_locked(limit, now);
}

std::optional<Batch> Dispatcher::take_locked(std::size_t limit, Clock::time_point now) {
  if (stopped_) return std::nullopt;
  ready_the_due(now);
  if (alone_ && running_ > 0) return std::nullopt;
  if (suspects_there() && (none_ready() || others_turns_ == 0)) {
    if (running_ > 0 || lanes_.suspects.empty()) return std::nullopt;
    Batch alone;
    alone.cautious = true;
    alone.works.push_back(take_suspect(lanes_, now));
    return alone;
  }
  std::deque<Entry*>& ready = lanes_.ready;
  if (ready.empty()) return std::nullopt;
  if (others_turns_ > 0) --others_turns_;
  const flow::Route& route = ready.front()->first.partition->route();
  std::size_t room = std::min(route.batch, limit);
  Batch batch;
  batch.works.reserve(std::min(room, ready.size()));
  alone_ = false;
  while (room > 0 && !ready.empty() && &ready.front()->first.partition->route() == &route) {
    Entry& entry = *ready.front();
    ready.pop_front();
    // The next message of an order key is called once this one is booked.
    batch.works.push_back(take_from(entry, route.outside ? 1 : room, now));
    room -= batch.works.back().items.size();
  }
  return batch;
}

// Precondition: nothing runs.
Work Dispatcher::take_suspect(Line& line, Clock::time_point now) {
  Entry& entry = *line.suspects.front();
  line.suspects.pop_front();
  others_turns_ = kOthersTurns;
  alone_ = true;
  return take_from(entry, 1, now);
}

Dispatcher::Calls Dispatcher::take_calls(const std::function<std::size_t(std::size_t)>& room) {
  const sync::Lock lock(mutex_);
  Calls calls;
  const Clock::time_point now = Clock::now();
  if (stopped_) return calls;
  ready_the_due(now);
  if (alone_ && running_ > 0) return calls;
  if (suspects_there() && (none_ready() || others_turns_ == 0)) {
    if (running_ > 0 || calls_.suspects.empty()) return calls;
    calls.cautious = true;
    calls.works.push_back(take_suspect(calls_, now));
    return calls;
  }
  std::map<std::size_t, std::size_t> left;  // by route
  std::erase_if(calls_.ready, [&](Entry* entry) HAPAX_REQUIRES(mutex_) {
    if (suspects_there() && others_turns_ == 0) return false;
    const std::size_t route = entry->second.partition->route_index();
    const auto [found, is_new] = left.try_emplace(route);
    if (is_new) found->second = room(route);
    if (found->second == 0) return false;
    --found->second;
    if (others_turns_ > 0) --others_turns_;
    alone_ = false;
    calls.works.push_back(take_from(*entry, 1, now));
    return true;
  });
  // Calls without room may wait for lanes, which may have only suspects. These would wait for turns
  // that the calls cannot use.
  if (suspects_there() && running_ == 0 && lanes_.ready.empty() && others_turns_ > 0) {
    others_turns_ = 0;
    wake_all();
  }
  return calls;
}

void Dispatcher::wait_for_calls(Clock::time_point until) {
  sync::Lock lock(mutex_);
  ready_the_due(Clock::now());
  if (!waiting_.empty()) until = std::min(until, Clock::time_point(waiting_.begin()->first));
  if (!calls_woken_) calls_.work_there.wait_until(lock.waitable(), until);
  calls_woken_ = false;
}

void Dispatcher::wake_calls() {
  const sync::Lock lock(mutex_);
  calls_woken_ = true;
  calls_.work_there.notify_all();
}

void Dispatcher::let_calls_run(bool may) {
  const sync::Lock lock(mutex_);
  if (std::exchange(calls_may_run_, may) != may) wake_all();
}

bool Dispatcher::is_suspect(const Entry& entry) const {
  return std::ranges::find(cautious_, entry.second.partition) != cautious_.end();
}

std::optional<Work> Dispatcher::prefetch(const Work& current, Clock::time_point now) {
  const sync::Lock lock(mutex_);
  if (stopped_ || alone_) return std::nullopt;
  ready_the_due(now);
  if (suspects_there()) return std::nullopt;
  std::deque<Entry*>& ready = lanes_.ready;
  Entry& entry = ready.empty() ? entry_of(current) : *ready.front();
  const std::list<Item>& items = entry.second.items;
  if (entry.first.partition->route().batch > 1 || items.empty() || items.front().not_before > now ||
      is_suspect(entry) || is_to_call(entry))
    return std::nullopt;
  if (!ready.empty()) ready.pop_front();
  return take_from(entry, 1, now);
}

Work Dispatcher::take_from(Entry& entry, std::size_t limit, Clock::time_point now) {
  auto& [id, strand] = entry;
  strand.state = State::running;
  ++strand.taken;
  ++strand.partition->dispatching.running;
  ++running_;
  Work work{strand.partition, id.order_key, {}};
  do {
    work.items.splice(work.items.end(), strand.items, strand.items.begin());
    --queued_;
  } while (work.items.size() < limit && !strand.items.empty() &&
           strand.items.front().not_before <= now);
  return work;
}

// Settled messages are freed after the lock.
void Dispatcher::finish(std::vector<Work> works) {
  const sync::Lock lock(mutex_);
  for (Work& work : works) finish_locked(work);
}

void Dispatcher::finish_locked(Work& work) {
  Entry& entry = entry_of(work);
  HAPAX_CHECK(work.settled <= work.items.size(), "more messages were finished than were taken");
  if (--running_ == 0 && (suspects_there() || alone_)) wake_all();
  if (--work.partition->dispatching.running == 0) idle_.notify_all();
  Strand& strand = entry.second;
  if (work.settled < work.items.size()) {
    std::list<Item> unsettled;
    unsettled.splice(unsettled.end(), work.items,
                     std::next(work.items.begin(), static_cast<std::ptrdiff_t>(work.settled)),
                     work.items.end());
    if (work.partition->over()) {
      keep_lost(*work.partition, unsettled);
    } else {
      queued_ += unsettled.size();
      strand.items.splice(strand.items.begin(), unsettled);
    }
  }
  if (--strand.taken > 0) return;  // its lane has the next one, too
  if (strand.items.empty())
    strands_.erase(StrandId(entry.first));
  else
    line_up(entry);
}

Dispatcher::Entry& Dispatcher::entry_of(const Work& work) {
  const auto found = strands_.find({work.partition.get(), work.order_key});
  HAPAX_CHECK(found != strands_.end() && found->second.taken > 0,
              "messages count as taken, and no lane has them");
  return *found;
}

void Dispatcher::drop(Partition& partition) {
  const sync::Lock lock(mutex_);
  partition.end();
  const auto is_dropped = [&](const Entry* entry) { return entry->first.partition == &partition; };
  for (Line* line : {&lanes_, &calls_}) {
    std::erase_if(line->ready, is_dropped);
    std::erase_if(line->suspects, is_dropped);
  }
  std::erase_if(waiting_, [&](const auto& entry) { return is_dropped(entry.second); });
  for (auto entry = strands_.begin(); entry != strands_.end();) {
    Strand& strand = entry->second;
    const bool dropped = is_dropped(&*entry);
    if (dropped) {
      queued_ -= strand.items.size();
      keep_lost(partition, strand.items);
      strand.items.clear();
    }
    // A running strand is erased when it finishes.
    entry = dropped && strand.state != State::running ? strands_.erase(entry) : std::next(entry);
  }
}

bool Dispatcher::wait_idle(const std::vector<std::shared_ptr<Partition>>& partitions,
                           Clock::time_point until) {
  sync::Lock lock(mutex_);
  return idle_.wait_until(lock.waitable(), until, [&] {
    for (const auto& partition : partitions)
      if (partition->dispatching.running > 0) return false;
    return true;
  });
}

bool Dispatcher::wait_all_idle(Clock::time_point until) {
  sync::Lock lock(mutex_);
  return idle_.wait_until(lock.waitable(), until,
                          [&]() HAPAX_REQUIRES(mutex_) { return running_ == 0; });
}

void Dispatcher::set_cautious(std::vector<std::shared_ptr<Partition>> about) {
  const sync::Lock lock(mutex_);
  cautious_ = std::move(about);
  for (Line* line : {&lanes_, &calls_}) {
    std::deque<Entry*> all = std::exchange(line->suspects, {});
    all.insert(all.end(), line->ready.begin(), line->ready.end());
    line->ready.clear();
    for (Entry* const entry : all)
      (is_suspect(*entry) ? line->suspects : line->ready).push_back(entry);
  }
  wake_all();
}

void Dispatcher::stop() {
  const sync::Lock lock(mutex_);
  stopped_ = true;
  wake_all();
}

bool Dispatcher::has_ready() const {
  const sync::Lock lock(mutex_);
  return !lanes_.ready.empty() || !calls_.ready.empty() || !lanes_.suspects.empty() ||
         !calls_.suspects.empty();
}

Dispatcher::Load Dispatcher::load() const {
  const sync::Lock lock(mutex_);
  return {queued_, waiting_.size()};
}

std::optional<Dispatcher::Blocking> Dispatcher::blocking(const Partition& partition,
                                                         std::int64_t offset) const {
  const sync::Lock lock(mutex_);
  std::optional<Blocking> found;
  for (const auto& [id, strand] : strands_) {
    if (id.partition != &partition) continue;
    if (strand.state == State::ready) return std::nullopt;
    if (strand.state != State::waiting) continue;
    const Item& first = strand.items.front();
    const Message& message = first.record->message();
    if (message.offset() == offset && first.attempts > 0)
      found = {first.attempts,
               message.key() ? std::optional<std::string>(*message.key()) : std::nullopt};
  }
  return found;
}

}  // namespace hapax::worker
