#include "observe/bounded_http_server.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "observe/deadline_stream.hpp"

namespace hapax::observe {
namespace {

// True on the accepting thread while it closes a connection that is one too many.
thread_local bool refusing = false;

}  // namespace

// Bounds what waits for a thread. httplib 0.11 can't be told that a connection was refused (enqueue
// returns nothing; from 0.14 on a bool), so a refused connection is run at once, to be closed.
class BoundedHttpServer::BoundedQueue final : public httplib::TaskQueue {
  using Accepted = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));

 public:
  Accepted enqueue(std::function<void()> connection) override {
    if (waiting_.load() >= kMaxWaitingConnections) {
      refusing = true;
      connection();
      refusing = false;
    } else {
      ++waiting_;
      threads_.enqueue([this, connection = std::move(connection)] {
        --waiting_;
        connection();
      });
    }
    return static_cast<Accepted>(true);
  }

  void shutdown() override { threads_.shutdown(); }

 private:
  std::atomic<int> waiting_{0};
  httplib::ThreadPool threads_{kAdminThreads};
};

BoundedHttpServer::BoundedHttpServer(Answer answer)
    : stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  // Called on the accepting thread once it counts as running: catches a stop() that came before.
  new_task_queue = [this]() -> httplib::TaskQueue* {
    if (stopping_) close_listener();
    return new BoundedQueue;  // httplib owns it
  };
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // Before routing, hence before httplib would read a body.
  set_pre_routing_handler(
      [answer = std::move(answer)](const httplib::Request& request, httplib::Response& response) {
        if (request.method == "GET" || request.method == "HEAD") {
          answer(request.path, response);
        } else {
          response.status = 405;
          response.set_header("Allow", "GET, HEAD");
        }
        return HandlerResponse::Handled;
      });
}

BoundedHttpServer::~BoundedHttpServer() { ::close(stop_event_); }

int BoundedHttpServer::bind(const std::string& host, int port) {
  errno = 0;
  host_ = host;
  port_ = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  // httplib's backlog of 5 drops the SYNs of a burst, and each is tried again a second later.
  if (port_ > 0) ::listen(svr_sock_, kBacklog);
  return port_;
}

// Without memory or threads to serve with it stops listening: the probes fail, the worker goes on.
void BoundedHttpServer::run() {
  try {
    do {
      listen_after_bind();
    } while (!stopping_ && bind(host_, port_) > 0);
  } catch (...) {
    close_listener();
  }
}

void BoundedHttpServer::stop() {
  stopping_ = true;
  ::eventfd_write(stop_event_, 1);
  close_listener();
}

void BoundedHttpServer::close_listener() {
  const std::lock_guard lock(listener_mutex_);
  if (svr_sock_ != INVALID_SOCKET) Server::stop();  // does nothing while not running
}

bool BoundedHttpServer::process_and_close_socket(socket_t socket) {
  bool answered = false;
  if (!refusing && !stopping_) {
    DeadlineStream stream(socket, stop_event_,
                          std::chrono::steady_clock::now() + kConnectionDeadline, kMaxRequestBytes);
    const auto before_routing = [](httplib::Request& request) { request.ranges.clear(); };
    bool closed = false;
    // An exception here is the client's connection, never the worker.
    try {
      answered = [&](auto& self) {
        if constexpr (requires { self.process_request(stream, true, closed, before_routing); })
          return self.process_request(stream, true, closed, before_routing);
        else
          return self.process_request(stream, "", 0, "", 0, true, closed, before_routing);
      }(*this);
    } catch (...) {
      answered = false;
    }
  }
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return answered;
}

}  // namespace hapax::observe
