#include "worker/halt_watch.hpp"

#include <algorithm>

namespace hapax::worker {

void HaltWatch::add(const store::Halt& halt, bool recorded) {
  const sync::Lock lock(mutex_);
  if (recorded)
    halted_[{halt.topic, halt.partition}] = halt;
  else
    to_record_.push_back(halt);
}

void HaltWatch::forget(const TopicPartition& id) {
  const sync::Lock lock(mutex_);
  halted_.erase(id);
}

std::vector<store::Halt> HaltWatch::unrecorded() const {
  const sync::Lock lock(mutex_);
  return to_record_;
}

void HaltWatch::record(KeeperSession& session) {
  for (const store::Halt& halt : unrecorded()) store::open_halt(session.get(), group_, halt);
}

void HaltWatch::serve(KeeperSession& session) {
  const HeldPartitions::List held = held_.all();
  std::vector<store::Halt> to_record;
  {
    const sync::Lock lock(mutex_);
    to_record = to_record_;
    if (held.empty() && halted_.empty() && to_record.empty()) return;
  }
  for (const store::Halt& halt : to_record) store::open_halt(session.get(), group_, halt);
  std::vector<store::Halt> open = store::read_halts(session.get(), group_);
  const auto stands = [&](const TopicPartition& id) {
    return std::ranges::find_if(open, [&](const store::Halt& halt) { return halt.stops(id); });
  };
  const sync::Lock lock(mutex_);
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
  for (const auto& partition : held_.all())
    if (const auto halt = stands(partition->id()); halt != open.end() && !partition->over())
      notices_.post(HaltWanted{.partition = partition, .halt = *halt, .recorded = true});
}

}  // namespace hapax::worker
