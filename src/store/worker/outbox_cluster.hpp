// The Kafka cluster that a group's published records go to, as PostgreSQL keeps it.
//
// Thread safety: none; each call uses the caller's session.
// Throws: DatabaseError (Phase::account), from all of them.
#pragma once

#include <optional>
#include <string>

#include "store/session.hpp"
#include "store/worker/outbox_lease.hpp"

namespace hapax::store {

struct OutboxCluster {
  std::string id;  // "": none is noted yet
};

// Nothing if the schema is older than this table.
std::optional<OutboxCluster> read_outbox_cluster(Session& session, const std::string& group);

// Notes `found` if none is noted, and returns what is noted then. Nothing if the lease or the
// incarnation is another one: nothing was changed.
std::optional<std::string> note_outbox_cluster(Session& session, const OutboxLease& lease,
                                               std::chrono::seconds time, const std::string& found);

// Another cluster may be noted. Returns the id that was, or "".
std::string forget_outbox_cluster(Transaction& transaction, const std::string& group);

}  // namespace hapax::store
