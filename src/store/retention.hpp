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

// Removes at most `limit` expired keys; how many it removed.
std::size_t expire_keys(Session& session, std::size_t limit);

}  // namespace hapax::store
