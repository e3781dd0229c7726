// Keys whose answers this gate has given lately. If a request has such a key, the gate reads the
// answer before it claims the key. That takes one round trip instead of two, and writes nothing.
// This only decides what comes first. A key that was removed here, or in PostgreSQL, is claimed
// like any other.
//
// Thread safety: all of it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <string_view>

#include "gate/request.hpp"

namespace hapax::gate {

class SeenKeys {
 public:
  static std::size_t hash_of(const Request& request) {
    const std::hash<std::string_view> hash;
    return hash(request.key) * 31 + hash(request.tenant);
  }

  void add(std::size_t hash) {
    if (has(hash)) return;
    Set& set = sets_[hash % kSets];
    for (std::size_t i = set.size() - 1; i > 0; --i)
      set[i].store(set[i - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
    set[0].store(hash, std::memory_order_relaxed);
  }
  bool has(std::size_t hash) const {
    return std::ranges::any_of(sets_[hash % kSets], [hash](const auto& slot) {
      return slot.load(std::memory_order_relaxed) == hash;
    });
  }

 private:
  // The latest four keys of one slot. If a slot held one key, two retried keys would push each
  // other out.
  using Set = std::array<std::atomic<std::size_t>, 4>;
  static constexpr std::size_t kSets = std::size_t{1} << 14U;

  std::array<Set, kSets> sets_{};
};

}  // namespace hapax::gate
