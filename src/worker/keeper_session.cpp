#include "worker/keeper_session.hpp"

namespace hapax::worker {

// Only a new connection proves that PostgreSQL is there: while it shuts down, old ones still work.
store::Session KeeperSession::connect() {
  store::Session made = connect_();
  postgres_.came_up();
  return made;
}

store::Session& KeeperSession::get() {
  if (!session_) session_.emplace(connect());
  return *session_;
}

void KeeperSession::broke(const char* what, const store::DatabaseError& error) {
  drop();
  store::Fault fault = error.fault();
  if (store::may_be_a_lost_session(fault.sqlstate)) {
    try {
      (void)connect();
      return;
    } catch (const store::DatabaseError& now) {
      fault = now.fault();
    }
  }
  postgres_.went_down(what, fault.sqlstate, fault.text);
}

// If the outage broke no session, nothing else notices the recovery, so try a new connection.
void KeeperSession::look_for_postgres() {
  if (!postgres_.is_down()) return;
  try {
    (void)connect();
  } catch (const store::DatabaseError&) {
    // Still down, as is known.
  }
}

}  // namespace hapax::worker
