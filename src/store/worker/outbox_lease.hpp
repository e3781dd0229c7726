// Which relay may send a group's records: the lease of its outbox.
//
// Thread safety: none; each call uses the caller's session or transaction.
// Throws: DatabaseError (Phase::account), from all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "store/session.hpp"
#include "store/transaction.hpp"
#include "sync/sleepless_clock.hpp"

namespace hapax::store {

// Proves that this relay is the only one of its group.
struct OutboxLease {
  std::string group;
  std::string holder;       // no other relay has this name
  std::int64_t epoch = 0;   // raised by each take-over
  std::string incarnation;  // of PostgreSQL, as read_store() told before the take-over
};

// A name that no other relay has. It also tells that the relay calls show_relay() in each of its
// sessions (relays of older releases do not), and how long its leases last.
std::string outbox_holder(const std::string& relay, std::chrono::seconds time);

// Shows other relays that the session of this one lives, until the session ends.
void show_relay(Session& session, const std::string& holder);

// How long a lease lasts after it was renewed, if its relay shows no session. `time`: otherwise.
constexpr std::chrono::milliseconds while_unseen(std::chrono::seconds time) {
  return std::chrono::milliseconds(time) / 4;
}

// Nothing if another relay has it. Otherwise every older lease of the group is fenced.
std::optional<OutboxLease> take_outbox_lease(Session& session, const std::string& group,
                                             const std::string& holder,
                                             const std::string& incarnation,
                                             std::chrono::seconds time);

// The first statement of a transaction that only the lease's holder may commit: locks the lease
// until the end. False if the lease or the incarnation is another one. The COMMIT will be
// synchronous, and PostgreSQL ends the transaction if this process stands still for `time`.
bool fence_outbox(Transaction& transaction, const OutboxLease& lease, std::chrono::seconds time);

using LeaseClock = sync::SleeplessClock;  // a lease runs on while the machine is suspended

// Whether a lease that was renewed then is due. Each renewal is one more version of its row.
inline bool must_be_renewed(LeaseClock::time_point renewed_at, std::chrono::seconds time) {
  return LeaseClock::now() - renewed_at > std::chrono::milliseconds(time) / 10;
}

// Renews it, behind statements that may have taken long. False as above.
bool renew_outbox_lease(Transaction& transaction, const OutboxLease& lease,
                        std::chrono::seconds time);

// Another relay may take it at once.
void release_outbox_lease(Session& session, const OutboxLease& lease);

}  // namespace hapax::store
