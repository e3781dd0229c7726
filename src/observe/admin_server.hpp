// The worker's HTTP endpoint for monitoring: /metrics, /livez, /readyz.
//
// It changes nothing. But it has no authentication, and it names topics and reasons. So it listens
// only on the configured address, which should not be reachable from outside.
//
// Hides cpp-httplib.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "observe/verdict.hpp"

namespace hapax::observe {

// Functions that make the answers. The server's thread calls them one at a time. Every probe waits
// for them, so they must be quick. If one throws, the answer is a 503.
struct AdminAnswers {
  std::function<std::string()> metrics;  // Prometheus' text format
  std::function<Verdict()> live;
  std::function<Verdict()> ready;
};

// Serves from construction to destruction, on a thread of its own. It has bounds against slow, many
// or hostile clients (bounded_http_server.hpp).
//
// GET /metrics  200, text. GET /livez, /readyz  200 when ok, else 503; JSON: ok, reasons, detail.
class AdminServer {
 public:
  // Listens on "host:port" ("127.0.0.1:9464", "[::1]:9464"; port 0: any free one).
  // Blocks: for the resolver, if the host is a name.
  // Throws: std::runtime_error that names what to fix, if it cannot listen there.
  AdminServer(std::string_view listen, AdminAnswers answers);

  // Blocks: until the current answer is made, or else a few milliseconds. Slow clients are cut off.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  int port() const;

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

}  // namespace hapax::observe
