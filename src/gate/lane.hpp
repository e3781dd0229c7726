// One lane of the gate: a thread with a PostgreSQL connection and an instance of every handler.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "gate/desk.hpp"
#include "gate/executor.hpp"
#include "hapax/handler.hpp"
#include "observe/metrics.hpp"

namespace hapax::gate {

class Lane {
 public:
  // `handlers`: one a route. All outlive it. It ends once the desk is stopped and empty.
  Lane(const ExecutorSetup& setup, Desk& desk, observe::Metrics& metrics,
       std::vector<std::unique_ptr<Handler>> handlers, std::uint64_t seed);

  // Of the handler that it runs; for the watch. Any thread.
  HandlerTime& handler_time() { return executor_.handler_time(); }

 private:
  using Tickets = std::vector<std::shared_ptr<Ticket>>;

  void run();
  void serve(const std::shared_ptr<Ticket>& ticket);
  void serve_batch(const Tickets& tickets);
  std::shared_ptr<Ticket> take_single();
  static void came_back();

  Status& status_;
  Desk& desk_;
  observe::Metrics& metrics_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::vector<BatchPace> paces_;  // of the routes
  const BatchRule batch_rule_;
  std::shared_ptr<Ticket> following_;  // taken while the one before it was committed
  Executor executor_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::gate
