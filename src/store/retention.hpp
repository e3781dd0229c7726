// Removing expired keys. Each call is a short transaction of its own.
// Throws: DatabaseError (Phase::account).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "store/session.hpp"

namespace hapax::store {

// True when `holder` has the lease for `time` from now on.
bool take_lease(Session& session, const std::string& name, const std::string& holder,
                std::chrono::seconds time);

struct Removed {
  std::size_t keys = 0;
  std::string until;  // when the last of them had expired: where to go on
};

// Removes at most `limit` expired keys, the oldest of those that expired at `from` or later.
Removed expire_keys(Session& session, std::size_t limit, const std::string& from = "-infinity");

}  // namespace hapax::store
