// The one lease of this process, under which all its calls are made.
//
// Thread safety: all of it, from any thread. One thread sets it.
#pragma once

#include <atomic>

#include "outside/lease.hpp"
#include "store/outside/calls.hpp"

namespace hapax::outside {

struct Holder {
  explicit Holder(std::chrono::milliseconds lease_lasts) : lease(lease_lasts) {}

  Lease lease;
  std::atomic<store::HolderId> id{0};  // 0: none yet
};

}  // namespace hapax::outside
