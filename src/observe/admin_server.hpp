// The worker's HTTP endpoint for monitoring: /metrics, /livez, /readyz.
//
// It shows, and changes nothing; but it has no authentication and names topics and reasons, so it
// listens where the configuration says and belongs behind the machine's own network.
//
// Hides cpp-httplib.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "observe/verdict.hpp"

namespace hapax::observe {

// Where the answers come from. Called on the server's thread, one at a time; every probe waits for
// them, so they must be quick. One that throws makes its answer a 503.
struct AdminAnswers {
  std::function<std::string()> metrics;  // Prometheus' text format
  std::function<Verdict()> live;
  std::function<Verdict()> ready;
};

// Serves from construction to destruction, on a thread of its own, with bounds for clients that are
// slow, many or hostile (bounded_http_server.hpp).
//
// GET /metrics  200, text. GET /livez, /readyz  200 when ok, else 503; JSON: ok, reasons, detail.
class AdminServer {
 public:
  // Listens on "host:port" ("127.0.0.1:9464", "[::1]:9464"; port 0: any free one).
  // Blocks: for the resolver where the host is a name.
  // Throws: std::runtime_error that says what to fix, when it can't listen there.
  AdminServer(std::string_view listen, AdminAnswers answers);

  // Blocks: until the answer being made is made, else a few milliseconds; slow clients are cut off.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  int port() const;

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

}  // namespace hapax::observe
