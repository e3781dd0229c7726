// A whole gate: connections, queue, lanes, retention of its keys.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "config/gate.hpp"
#include "flow/route.hpp"
#include "gate/admission.hpp"
#include "gate/desk.hpp"
#include "gate/handler_watch.hpp"
#include "gate/lane.hpp"
#include "gate/operations.hpp"
#include "gate/outcomes.hpp"
#include "gate/reload.hpp"
#include "gate/server.hpp"
#include "gate/status.hpp"
#include "gate/tls.hpp"
#include "observe/metrics.hpp"
#include "store/session.hpp"
#include "traces/tracer.hpp"
#include "worker/retention.hpp"

namespace hapax::gate {

class Gate {
 public:
  // Makes the handlers. `config`, `status`, `metrics` and `operations` outlive it. `connect` is
  // called by many threads. `operations`: null if no route accepts. `tls`: null for plain HTTP.
  // Throws: std::runtime_error that names the handler whose on_start threw.
  Gate(const config::GateConfig& config, std::vector<flow::Route> routes,
       std::function<store::Session()> connect, Status& status, observe::Metrics& metrics,
       const Operations* operations = nullptr, Tls* tls = nullptr);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Serves from now on. Throws: std::runtime_error if it cannot listen.
  void start();

  // Precondition: started.
  std::uint16_t port() const { return server_->port(); }

  // Whether the handlers of all lanes hang. Then the process must end.
  bool hangs() const { return watch_->all_lost(); }

  // Ends the gate and answers the requests in flight. False: a handler has not come back in time.
  // Then the process must end itself, because the destructor would wait for the handler.
  // Blocks: at most gate.shutdown_timeout.
  bool drain();

 private:
  using Handlers = std::vector<std::unique_ptr<Handler>>;

  const config::GateConfig& config_;
  const std::vector<flow::Route> routes_;
  const std::function<store::Session()> connect_;
  Status& status_;
  observe::Metrics& metrics_;
  Tls* const tls_;
  std::optional<traces::Tracer> tracer_;  // nothing: traces are off
  Callers callers_;
  const Admission admission_;
  const ExecutorSetup executor_setup_;
  Desk desk_;
  std::vector<Handlers> handlers_;  // of each lane, until it starts
  std::unique_ptr<worker::Retention> retention_;
  std::unique_ptr<Outcomes> outcomes_;
  std::unique_ptr<Reload> reload_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // before server_ ends, which they answer through
  std::unique_ptr<PostgresProbe> probe_;
  std::unique_ptr<HandlerWatch> watch_;
};

}  // namespace hapax::gate
