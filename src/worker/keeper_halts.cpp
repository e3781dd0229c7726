// Halts: recorded as soon as PostgreSQL is there, watched until an operator ends them.
#include <algorithm>

#include "worker/keeper.hpp"

namespace hapax::worker {

void Keeper::halted(const store::Halt& halt, bool recorded) {
  const std::lock_guard lock(mutex_);
  const auto held = held_.find({halt.topic, halt.partition});
  if (held != held_.end() && held->second->over()) held_.erase(held);
  if (recorded) {
    halted_[{halt.topic, halt.partition}] = halt;
  } else {
    to_record_.push_back(halt);
    halt_is_new_ = true;
  }
  woken_.notify_all();
}

std::vector<store::Halt> Keeper::unrecorded() const {
  const std::lock_guard lock(mutex_);
  return to_record_;
}

// Records new halts; finds those that an operator has ended, and routes that another worker halted.
void Keeper::serve_halts() {
  std::vector<store::Halt> to_record;
  {
    const std::lock_guard lock(mutex_);
    to_record = to_record_;
    halt_is_new_ = false;
    if (held_.empty() && halted_.empty() && to_record.empty()) return;
  }
  try {
    for (const store::Halt& halt : to_record)
      store::open_halt(session(session_), setup_.group, halt);
    std::vector<store::Halt> open = store::read_halts(session(session_), setup_.group);
    const auto stands = [&](const TopicPartition& id) {
      return std::ranges::find_if(open, [&](const store::Halt& halt) { return halt.stops(id); });
    };
    const std::lock_guard lock(mutex_);
    to_record_.erase(to_record_.begin(),
                     to_record_.begin() + static_cast<std::ptrdiff_t>(to_record.size()));
    for (const store::Halt& halt : to_record) halted_[{halt.topic, halt.partition}] = halt;
    open.insert(open.end(), to_record_.begin(), to_record_.end());  // came meanwhile
    for (auto halted = halted_.begin(); halted != halted_.end();) {
      if (stands(halted->first) != open.end()) {
        ++halted;
        continue;
      }
      notices_.post(HaltEnded{halted->first});
      halted = halted_.erase(halted);
    }
    for (const auto& [id, partition] : held_)
      if (const auto halt = stands(id); halt != open.end() && !partition->over())
        notices_.post(HaltWanted{partition, *halt, true});
  } catch (const store::DatabaseError& error) {
    session_.reset();
    broke("reading halts", error);
  }
}

}  // namespace hapax::worker
