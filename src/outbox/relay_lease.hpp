// Whether this relay may work: its session with PostgreSQL, and the lease of its group's outbox.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "outbox/relay_setup.hpp"
#include "store/session.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class RelayLease {
 public:
  using Clock = store::LeaseClock;

  explicit RelayLease(const RelaySetup& setup);

  // Connects if there is no session. Takes the lease if it is free, and asks for it once a second.
  // Other relays see by the session that this one lives.
  // Returns the batches that earlier relays left open if this call has taken the lease.
  // Throws: DatabaseError. Blocks: as a connect does.
  using OpenBatches = std::map<std::string, store::OpenBatch>;
  std::optional<OpenBatches> seek();

  bool is_held() const { return lease_.has_value(); }
  // Whether records in hand may be sent, because no other relay can have taken over.
  bool is_fresh() const { return Clock::now() - renewed_at_ < lasts_; }
  bool must_be_renewed() const;
  Clock::time_point renewed_at() const { return renewed_at_; }

  // Whether this session was seen to be of the group's database, and of no copy of it.
  bool knows_store() const { return session_ && knows_store_; }

  // Precondition of these: is_held() or knows_store(), and seek() has returned since failed().
  store::Session& session() { return *session_; }
  const store::OutboxLease& proof() const { return *lease_; }  // if it is held
  const std::string& store_id() const { return store_id_; }    // as it was seen last

  // A step with PostgreSQL has found it ours, renewed at `time`.
  void renewed(Clock::time_point time);
  // Another relay has the lease, or PostgreSQL lost commits, so ids may name other rows.
  void lost();
  // A step with PostgreSQL ended with this error. Until the lease is renewed, it lasts only
  // store::while_unseen().
  void failed(const std::string& error);
  // Gives the lease back, so another relay may take it at once. If PostgreSQL is away, the lease
  // runs out by itself. Throws: nothing.
  void release();

 private:
  std::optional<store::StoreIdentity> look_at_store();
  void drop_session();
  void wait(const std::string& why, const std::function<void()>& tell);

  const std::string group_;
  const std::string holder_;  // unlike the setup's name, no other process has it
  const std::function<store::Session()> connect_;
  const std::chrono::seconds time_;
  std::optional<store::Session> session_;
  std::optional<store::OutboxLease> lease_;
  std::string store_id_;
  bool knows_store_ = false;
  Clock::time_point renewed_at_{}, ask_at_{};
  std::chrono::milliseconds lasts_{0};  // from renewed_at_
  std::string said_;                    // why PostgreSQL does not let it work
};

}  // namespace hapax::outbox
