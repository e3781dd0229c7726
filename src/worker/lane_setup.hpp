// What all lanes of a worker share. Outlives them.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "flow/breaker.hpp"
#include "flow/processor.hpp"
#include "observe/metrics.hpp"
#include "traces/tracer.hpp"
#include "worker/dispatcher.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"

namespace hapax::worker {

struct LaneSetup {
  const std::string& group;
  const std::string& worker_name;
  flow::Processor::Connect connect;
  Dispatcher& dispatcher;
  Notices& notices;
  PostgresState& postgres;
  observe::Metrics& metrics;
  std::vector<observe::RouteMetrics> route_metrics;  // by route index
  std::deque<flow::Breaker> breakers;                // by route index
  // Called by the lane for each message when its outcome is committed; for measuring. May be empty.
  // Blocks the lane, and must not throw.
  std::function<void(const Message&)> settled = {};
  bool log_error_text = false;       // log.error_text: errors may quote messages
  traces::Tracer* tracer = nullptr;  // null: traces are off
};

// Makes the processor's task of the first message of `work`. It refers to objects that `work` owns,
// and stays valid if `work` is moved.
flow::Task task_of(LaneSetup& setup, const Work& work, const Item& item, bool cautious);

}  // namespace hapax::worker
