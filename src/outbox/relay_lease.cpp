#include "outbox/relay_lease.hpp"

#include <utility>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "outbox/lease_ahead.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;
namespace log = observe::log;

constexpr auto kAsk = 1s;  // while another relay has it

}  // namespace

RelayLease::RelayLease(const RelaySetup& setup)
    : group_(setup.group),
      holder_(store::outbox_holder(setup.name, setup.lease)),
      connect_(setup.connect),
      time_(setup.lease) {}

bool RelayLease::must_be_renewed() const { return store::must_be_renewed(renewed_at_, time_); }

std::optional<RelayLease::OpenBatches> RelayLease::seek() {
  if (!session_) {
    store::Session session(connect_());
    store::show_relay(session, holder_);
    session_.emplace(std::move(session));
  }
  if (lease_ || Clock::now() < ask_at_) return std::nullopt;
  ask_at_ = Clock::now() + kAsk;
  const auto store = look_at_store();
  if (!store) return std::nullopt;
  const auto asked = Clock::now();
  auto lease = store::take_outbox_lease(*session_, group_, holder_, store->incarnation, time_);
  if (!lease) {
    warn_of_lease_ahead(*session_, group_, said_);
    return std::nullopt;
  }
  // Read before the lease counts. If this fails, the lease is taken once more, and the batches are
  // read again.
  auto open_batches = store::read_open_batches(*session_, group_);
  lease_ = std::move(lease);
  renewed(asked);
  log::info("outbox_taken", {{"group", group_}, {"epoch", lease_->epoch}},
            "this relay sends the group's published records");
  flow::crash_point("outbox_taken");
  return open_batches;
}

// Nothing if the relay must not work with this database. A copy must not publish the original's
// records, so the relay asks before each take-over.
std::optional<store::StoreIdentity> RelayLease::look_at_store() {
  if (!store::has_outbox(*session_)) return std::nullopt;
  store::StoreIdentity store = store::read_store(*session_);
  if (store.copied) {
    wait("copied", [&] {
      log::warning("outbox_copied", {{"found", store.facts}},
                   "the database is a copy, so nothing is published; see store_copied in the docs");
    });
    return std::nullopt;
  }
  if (!store::may_read_batches(*session_)) {
    wait("batches", [] {
      log::warning(
          "outbox_waits", {{"error", "no SELECT on hapax.outbox_batches"}},
          "a batch may be open that this relay must not send again; `hapax check` tells how to "
          "give the right");
    });
    return std::nullopt;
  }
  store_id_ = store.id;
  knows_store_ = true;
  return store;
}

// The next session may lead to another database.
void RelayLease::wait(const std::string& why, const std::function<void()>& tell) {
  if (std::exchange(said_, why) != why) tell();
  drop_session();
}

void RelayLease::drop_session() {
  session_.reset();
  knows_store_ = false;
}

void RelayLease::renewed(Clock::time_point time) {
  renewed_at_ = time;
  knows_store_ = true;
  lasts_ = time_;
  said_.clear();
}

void RelayLease::lost() {
  log::warning("outbox_lost", {{"group", group_}},
               "another relay has the lease, or PostgreSQL was restarted: beginning again");
  lease_.reset();
}

// The lease stays. The next step finds out whether it is still ours.
void RelayLease::failed(const std::string& error) {
  drop_session();
  lasts_ = store::while_unseen(time_);
  if (std::exchange(said_, error).empty())
    log::warning("outbox_waits", {{"error", error}},
                 "PostgreSQL does not let the relay work; it tries again");
}

void RelayLease::release() {
  try {
    if (lease_ && session_) store::release_outbox_lease(*session_, *lease_);
  } catch (const store::DatabaseError&) {
    // The lease runs out by itself.
  }
}

}  // namespace hapax::outbox
