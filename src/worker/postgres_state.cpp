#include "worker/postgres_state.hpp"

#include "observe/log.hpp"
#include "store/connect_error.hpp"

namespace hapax::worker {

void PostgresState::came_up() {
  const sync::Lock lock(mutex_);
  connected_at_ = Clock::now();
  if (known_ && up_) return;
  if (connected_at_ < up_not_before_) return;
  if (known_) observe::log::info("postgres_up", {}, "PostgreSQL is back; partitions go on");
  known_ = up_ = true;
  health_.postgres(true, true);
  metrics_.postgres_came_up();
}

void PostgresState::went_down(const std::string& what, const std::string& sqlstate,
                              const std::string& text, Clock::time_point tried_at) {
  const sync::Lock lock(mutex_);
  if (tried_at < connected_at_) return;
  if (!sqlstate.empty()) up_not_before_ = Clock::now() + quiet_;
  if (known_ && !up_) return;
  known_ = true;
  up_ = false;
  const store::Outage outage = store::explain_outage(sqlstate, text);
  observe::log::warning(
      "postgres_down", {{"while", what}, {"sqlstate", sqlstate}, {"error", outage.line}},
      "PostgreSQL is away; messages wait, no attempt is counted, it goes on by itself");
  health_.postgres(false, false, outage.shown);
  metrics_.postgres_went_down();
}

}  // namespace hapax::worker
