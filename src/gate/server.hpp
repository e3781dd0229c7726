// The HTTP/1.1 server of the gate: thousands of connections on one thread of its own. It bounds
// what clients send and how long they take for it, and hands whole requests to the desk.
//
// Hides Boost.Beast.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/gate.hpp"
#include "gate/admission.hpp"
#include "gate/desk.hpp"
#include "gate/status.hpp"
#include "observe/metrics.hpp"
#include "traces/tracer.hpp"

namespace hapax::gate {

class Tls;

struct ServerSetup {
  const config::Gate& gate;
  const Admission& admission;
  Desk& desk;
  Status& status;
  observe::Metrics& metrics;
  const Tls* tls = nullptr;          // null: plain HTTP
  traces::Tracer* tracer = nullptr;  // null: traces are off
};

class Server {
 public:
  // Listens and serves. All references outlive it, and so does all that answers tickets.
  // Throws: std::runtime_error with the reason, if it cannot listen there.
  explicit Server(const ServerSetup& setup);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;

  // Accepts no more connections, and closes idle ones. Requests in flight are answered, with
  // `Connection: close`. A client that still sends its request is cut off after a second. False: a
  // request that is executed was not answered in time.
  // Blocks: until all connections are closed, at most so long.
  bool drain(std::chrono::milliseconds at_most);

 private:
  class Running;
  std::unique_ptr<Running> running_;
};

}  // namespace hapax::gate
