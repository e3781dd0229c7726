#include "observe/admin_server.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "observe/bounded_http_server.hpp"
#include "observe/escape.hpp"
#include "observe/without_signals.hpp"

namespace hapax::observe {
namespace {

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kIndex =
    "hapax worker\n"
    "  /metrics  numbers for Prometheus\n"
    "  /livez    200 while the worker runs, 503 when it should be restarted\n"
    "  /readyz   200 while it processes or waits for messages, 503 with the reasons\n";

struct Address {
  std::string host;
  int port = 0;
};

Address parse(std::string_view listen) {
  const auto fail = [&](const char* what) {
    throw std::runtime_error("admin.listen is " + quote_for_terminal(listen) + ": " + what +
                             "; write host:port, for example 127.0.0.1:9464 or [::1]:9464");
  };
  const auto colon = listen.rfind(':');
  if (colon == std::string_view::npos) fail("the port is missing");
  std::string_view host = listen.substr(0, colon);
  const std::string_view digits = listen.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    fail("an IPv6 address belongs in brackets");
  if (host.empty()) fail("the host is missing");
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port > 65535)
    fail("the port is not a number from 0 to 65535");
  return {std::string(host), static_cast<int>(port)};
}

[[noreturn]] void fail_to_listen(std::string_view listen, int error) {
  std::string fix = "is the host's name right, does it belong to this machine?";
  if (error == EADDRINUSE)
    fix = "another process listens there; stop it or choose another port (0: any free one)";
  if (error == EACCES) fix = "ports below 1024 need privileges; choose a higher one";
  if (error == EADDRNOTAVAIL) fix = "this machine has no such address; choose one of its own";
  throw std::runtime_error("admin.listen: cannot listen on " + quote_for_terminal(listen) +
                           (error == 0 ? "" : std::string(" (") + std::strerror(error) + ")") +
                           ": " + fix);
}

void show(const std::function<Verdict()>& judge, httplib::Response& response) {
  const Verdict verdict = judge();
  const nlohmann::ordered_json body{
      {"ok", verdict.ok}, {"reasons", verdict.reasons}, {"detail", verdict.detail}};
  using Json = nlohmann::ordered_json;
  response.status = verdict.ok ? 200 : 503;
  response.set_content(body.dump(2, ' ', false, Json::error_handler_t::replace) + "\n",
                       "application/json");
}

void route(const AdminAnswers& answers, const std::string& path, httplib::Response& response) {
  response.status = 200;
  response.set_header("Cache-Control", "no-store");
  if (path == "/metrics") {
    response.set_content(answers.metrics(), kMetricsType);
  } else if (path == "/livez") {
    show(answers.live, response);
  } else if (path == "/readyz") {
    show(answers.ready, response);
  } else {
    if (path != "/") response.status = 404;
    response.set_content(kIndex, "text/plain; charset=utf-8");
  }
}

// Fails closed: if the state of the worker is unknown, the answer must not be that it is healthy.
void route_or_503(const AdminAnswers& answers, const std::string& path,
                  httplib::Response& response) {
  std::string why = "unknown exception";
  try {
    return route(answers, path, response);
  } catch (const std::exception& error) {
    why = to_valid_utf8(error.what());
  } catch (...) {
  }
  response.status = 503;
  const nlohmann::ordered_json body{{"ok", false}, {"reasons", {"no answer: " + why}}};
  response.set_content(body.dump(2) + "\n", "application/json");
}

}  // namespace

struct AdminServer::Running {
  explicit Running(AdminAnswers answers)
      : server([answers = std::move(answers)](const httplib::Request& request,
                                              httplib::Response& response) {
          route_or_503(answers, request.path, response);
        }) {}

  BoundedHttpServer server;
  int port = 0;
  std::thread thread;
};

AdminServer::AdminServer(std::string_view listen, AdminAnswers answers)
    : running_(std::make_unique<Running>(std::move(answers))) {
  const Address address = parse(listen);
  running_->port = running_->server.bind(address.host, address.port);
  if (running_->port < 0) fail_to_listen(listen, errno);
  running_->thread = without_signals([server = &running_->server] { server->run(); });
}

AdminServer::~AdminServer() {
  running_->server.stop();
  running_->thread.join();
}

int AdminServer::port() const { return running_->port; }

}  // namespace hapax::observe
