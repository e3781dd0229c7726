// The one lease of this process, under which it makes all calls, and the keys that it has for them.
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

  // The holder under which a call may begin now; 0: none.
  store::HolderId may_call() const {
    const store::HolderId now = id;  // read first, because if the lease is lost, the id changes
    return lease.may_call() ? now : 0;
  }

  Lease lease;
  std::atomic<store::HolderId> id{0};  // 0: none yet
  KeysInHand keys;
};

}  // namespace hapax::outside
