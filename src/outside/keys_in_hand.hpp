// The keys that this process has in hand, each for one message or one replay at a time. All calls
// of the process have one lease, so PostgreSQL cannot tell a message and a replay of one key apart.
//
// PostgreSQL may keep a key for this process, though the process does not go on with it. Such a key
// stays in hand until it is given back. Otherwise it would be `started` as long as the process
// lives.
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
  // False if another message or replay has it. `key`: as the handler gets it.
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

  // PostgreSQL may keep the key for this process, so give_back() must give it back.
  void leave(std::string key, store::HeldKey held) {
    const sync::Lock lock(mutex_);
    left_.emplace_back(std::move(key), std::move(held));
  }

  // Gives the left keys back. Throws: DatabaseError; then they are still left.
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
  // In the order in which they were left; only one thread gives them back.
  std::vector<std::pair<std::string, store::HeldKey>> left_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::outside
