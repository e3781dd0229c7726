// A relay's lease that PostgreSQL's clock keeps alive, because the clock went back.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "store/session.hpp"

namespace hapax::store {

struct LeaseAhead {
  std::string holder;
  std::string until;  // ISO 8601, UTC
};
inline constexpr std::chrono::seconds kLongestLease{60};  // no relay asks for more

// Nothing if the group's lease lasts no longer than kLongestLease.
// Throws: DatabaseError (Phase::account). Thread safety: none; it uses the caller's session.
std::optional<LeaseAhead> read_lease_ahead(Session& session, const std::string& group);

}  // namespace hapax::store
