// Tells of a lease that holds this relay off for longer than a lease lasts.
#pragma once

#include <string>

#include "store/session.hpp"

namespace hapax::outbox {

// Logs it once: `said` is what was logged last. The lease may be valid, so nothing is done about
// it. Throws: DatabaseError (Phase::account). Thread safety: none; it belongs to the relay's
// thread.
void warn_of_lease_ahead(store::Session& session, const std::string& group, std::string& said);

}  // namespace hapax::outbox
