// The one lease of this process, under which all its calls are made, and the keys that it has for
// them.
//
// Thread safety: all of it, from any thread. One thread sets the lease, and gives keys back.
#pragma once

#include <atomic>

#include "outside/keys_in_hand.hpp"
#include "outside/lease.hpp"
#include "store/outside/calls.hpp"

namespace hapax::outside {

struct Holder {
  explicit Holder(std::chrono::milliseconds lease_lasts) : lease(lease_lasts) {}

  // Under which a call may begin now; 0: under none.
  store::HolderId may_call() const {
    const store::HolderId now = id;  // first: a lease that is lost takes its id with it
    return lease.may_call() ? now : 0;
  }

  Lease lease;
  std::atomic<store::HolderId> id{0};  // 0: none yet
  KeysInHand keys;
};

}  // namespace hapax::outside
