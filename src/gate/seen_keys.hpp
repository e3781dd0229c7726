// Keys whose answers this gate has given lately. A retry of one is looked up before it is claimed,
// which is one round trip instead of two, and writes nothing. It only tells where to look first: a
// key that it forgot, or that is gone by now, is claimed as any other.
//
// Thread safety: all of it.
#pragma once

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

  void add(std::size_t hash) { slots_[hash % kSlots].store(hash, std::memory_order_relaxed); }
  bool has(std::size_t hash) const {
    return slots_[hash % kSlots].load(std::memory_order_relaxed) == hash;
  }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 16U;

  std::array<std::atomic<std::size_t>, kSlots> slots_{};
};

}  // namespace hapax::gate
