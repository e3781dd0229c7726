// Warns of a lease that keeps this relay from sending for longer than a lease lasts.
#pragma once

#include <string>

#include "store/session.hpp"

namespace hapax::outbox {

// Logs it once, because the last parameter keeps the last logged text. The lease may be valid, so
// the relay does nothing else about it. Throws: DatabaseError (Phase::account). Thread safety:
// none; it belongs to the relay's thread.
void warn_of_lease_ahead(store::Session& session, const std::string& group, std::string& said);

}  // namespace hapax::outbox
