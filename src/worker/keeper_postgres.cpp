// What the keeper sees of PostgreSQL: its connections, their loss, and the end of an outage.
#include "worker/keeper.hpp"

namespace hapax::worker {

// Only a new connection proves that PostgreSQL is there: while it shuts down, old ones still work.
store::Session Keeper::connect() {
  store::Session made = setup_.connect();
  postgres_.came_up();
  return made;
}

store::Session& Keeper::session(std::optional<store::Session>& kept) {
  if (!kept) kept.emplace(connect());
  return *kept;
}

// A connection that was lost may be from before an outage that is over by now: a new one tells.
void Keeper::broke(const char* what, const store::DatabaseError& error) {
  store::Fault fault = error.fault();
  if (fault.kind != store::Fault::Kind::sql || fault.sqlstate.starts_with("57P")) {
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
void Keeper::look_for_postgres() {
  if (!postgres_.is_down()) return;
  try {
    (void)connect();
  } catch (const store::DatabaseError&) {
    // Still down, as is known.
  }
}

}  // namespace hapax::worker
