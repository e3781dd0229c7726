// The keys that this process has in hand, each for one message or one replay at a time. All its
// calls are made under one lease, so PostgreSQL would not keep the two apart.
//
// A key that PostgreSQL may keep for this process, though nothing here goes on with it, stays in
// hand until it is given back: else it would be `started` for as long as the process lives.
//
// Thread safety: all of it, from any thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/outside/calls.hpp"
#include "sync/mutex.hpp"

namespace hapax::outside {

class KeysInHand {
 public:
  // False if another message or replay has it. `key`: as it is handed on.
  bool add(const std::string& key) {
    const sync::Lock lock(mutex_);
    return keys_.insert(key).second;
  }

  void remove(const std::string& key) {
    const sync::Lock lock(mutex_);
    keys_.erase(key);
  }

  bool empty() const {
    const sync::Lock lock(mutex_);
    return keys_.empty();
  }

  // PostgreSQL may keep it, and it is to be given back.
  void leave(std::string key, store::HeldKey held) {
    const sync::Lock lock(mutex_);
    left_.emplace_back(std::move(key), std::move(held));
  }

  // Gives back what was left. Throws: DatabaseError; then it is still left.
  void give_back(store::Session& session) {
    std::vector<store::HeldKey> held;
    {
      const sync::Lock lock(mutex_);
      for (const auto& left : left_) held.push_back(left.second);
    }
    if (held.empty()) return;
    store::release_calls(session, held);
    const sync::Lock lock(mutex_);
    const auto given_back = left_.begin() + static_cast<std::ptrdiff_t>(held.size());
    for (auto left = left_.begin(); left != given_back; ++left) keys_.erase(left->first);
    left_.erase(left_.begin(), given_back);
  }

 private:
  mutable sync::Mutex mutex_;
  std::set<std::string> keys_ HAPAX_GUARDED_BY(mutex_);
  // In the order in which they were left; one thread gives back.
  std::vector<std::pair<std::string, store::HeldKey>> left_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::outside
