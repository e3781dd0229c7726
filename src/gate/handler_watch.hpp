// Answers a request whose handler does not come back (gate.handler_timeout), and all requests if
// PostgreSQL does not answer.
//
// A thread cannot be ended from outside. So the request is taken from its lane: the client is
// answered, and what the handler does later is rolled back. Its lane is lost until then. If no lane
// is left, the process must end. PostgreSQL itself ends the session, and frees its locks, after
// postgres.idle_in_transaction_timeout.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "config/gate.hpp"
#include "flow/route.hpp"
#include "gate/desk.hpp"
#include "gate/handler_time.hpp"
#include "gate/postgres_probe.hpp"
#include "gate/status.hpp"
#include "observe/metrics.hpp"

namespace hapax::gate {

struct HandlerWatchSetup {
  const config::Gate& gate;
  const std::vector<flow::Route>& routes;
  Desk& desk;
  observe::Metrics& metrics;
  const PostgresProbe& probe;
  Status& status;
  std::vector<HandlerTime*> lanes;
};

// A thread that looks at all lanes. All references in the setup outlive it.
class HandlerWatch {
 public:
  explicit HandlerWatch(HandlerWatchSetup setup);

  // Lanes whose handler was given up and has not come back.
  std::size_t lost() const { return lost_; }
  bool all_lost() const { return lost_ == setup_.lanes.size(); }

 private:
  void look();
  void look_at_postgres();
  void give_up(const std::shared_ptr<Ticket>& ticket);
  void break_up(HandlerTime& lane, Clock::time_point now);

  const HandlerWatchSetup setup_;
  std::atomic<std::size_t> lost_ = 0;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::gate
