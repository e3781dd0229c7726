#include "worker/dispatcher.hpp"

#include "worker/check.hpp"

namespace hapax::worker {

void Dispatcher::add(std::shared_ptr<Partition> partition, std::uint64_t order_key, Item item,
                     std::chrono::milliseconds wait) {
  const std::lock_guard lock(mutex_);
  if (partition->over()) return;
  const StrandId id{partition.get(), order_key};
  const auto [found, is_new] = strands_.try_emplace(id);
  Strand& strand = found->second;
  strand.items.push_back(std::move(item));
  ++queued_;
  if (!is_new) return;
  strand.partition = std::move(partition);
  if (wait.count() > 0) {
    make_waiting(id, strand, wait);
  } else {
    make_ready(id, strand);
  }
}

void Dispatcher::make_ready(const StrandId& id, Strand& strand) {
  strand.state = State::ready;
  ready_.push_back(id);
  work_there_.notify_one();
}

void Dispatcher::make_waiting(const StrandId& id, Strand& strand, std::chrono::milliseconds wait) {
  strand.state = State::waiting;
  const auto due = waiting_.emplace(Clock::now() + wait, id);
  if (due == waiting_.begin()) work_there_.notify_one();  // somebody must wake earlier now
}

void Dispatcher::ready_the_due(Clock::time_point now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const StrandId id = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    make_ready(id, strands_.at(id));
  }
}

std::optional<Work> Dispatcher::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return std::nullopt;
    ready_the_due(Clock::now());
    const bool may_run = !cautious_ || running_ == 0;
    if (!ready_.empty() && may_run) break;
    if (waiting_.empty() || !may_run) {
      work_there_.wait(lock);
    } else {
      work_there_.wait_until(lock, Clock::time_point(waiting_.begin()->first));
    }
  }
  const StrandId id = ready_.front();
  ready_.pop_front();
  Strand& strand = strands_.at(id);
  strand.state = State::running;
  ++strand.partition->running;
  ++running_;
  --queued_;
  Work work{strand.partition, id.order_key, std::move(strand.items.front()), cautious_};
  strand.items.pop_front();
  return work;
}

// The strand of what a lane has run, or nothing where its partition was dropped meanwhile.
Dispatcher::Strand* Dispatcher::finish(const Work& work) {
  const auto found = strands_.find({work.partition.get(), work.order_key});
  HAPAX_CHECK(found != strands_.end(), "a message was finished that nobody had taken");
  --running_;
  if (cautious_) work_there_.notify_one();
  if (--work.partition->running == 0) idle_.notify_all();
  if (!work.partition->over()) return &found->second;
  strands_.erase(found);
  return nullptr;
}

void Dispatcher::settled(Work work) {
  const std::lock_guard lock(mutex_);
  Strand* const strand = finish(work);
  if (strand == nullptr) return;
  const StrandId id{work.partition.get(), work.order_key};
  if (strand->items.empty()) {
    strands_.erase(id);
  } else {
    make_ready(id, *strand);
  }
}

void Dispatcher::again(Work work, std::chrono::milliseconds wait) {
  const std::lock_guard lock(mutex_);
  Strand* const strand = finish(work);
  if (strand == nullptr) return;
  strand->items.push_front(std::move(work.item));
  ++queued_;
  make_waiting({work.partition.get(), work.order_key}, *strand, wait);
}

void Dispatcher::drop(Partition& partition) {
  const std::lock_guard lock(mutex_);
  partition.end();
  const auto is_dropped = [&](const StrandId& id) { return id.partition == &partition; };
  std::erase_if(ready_, is_dropped);
  std::erase_if(waiting_, [&](const auto& entry) { return is_dropped(entry.second); });
  for (auto entry = strands_.begin(); entry != strands_.end();) {
    Strand& strand = entry->second;
    const bool dropped = is_dropped(entry->first);
    if (dropped) {
      queued_ -= strand.items.size();
      strand.items.clear();
    }
    // A running one is erased when it finishes.
    entry = dropped && strand.state != State::running ? strands_.erase(entry) : std::next(entry);
  }
}

bool Dispatcher::wait_idle(const std::vector<std::shared_ptr<Partition>>& partitions,
                           Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, until, [&] {
    for (const auto& partition : partitions)
      if (partition->running > 0) return false;
    return true;
  });
}

void Dispatcher::set_cautious(bool cautious) {
  const std::lock_guard lock(mutex_);
  cautious_ = cautious;
  work_there_.notify_all();
}

void Dispatcher::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  work_there_.notify_all();
}

Dispatcher::Load Dispatcher::load() const {
  const std::lock_guard lock(mutex_);
  return {queued_, waiting_.size()};
}

}  // namespace hapax::worker
