#include "observe/bounded_http_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "observe/exchange_stream.hpp"

namespace hapax::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// In a turn; so what an accepted client has sent is read many times before others push it out.
constexpr int kAcceptedAtOnce = 8;

// After an error that the next try would meet, too, such as no file descriptor left.
constexpr milliseconds kAcceptAgainAfter{100};

bool would_wait(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace

BoundedHttpServer::BoundedHttpServer(Answer answer)
    : stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
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

BoundedHttpServer::~BoundedHttpServer() {
  if (svr_sock_ != INVALID_SOCKET) ::close(svr_sock_);
  ::close(stop_event_);
}

int BoundedHttpServer::bind(const std::string& host, int port) {
  errno = 0;
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (bound <= 0) return -1;
  // httplib's backlog of 5 drops the SYNs of a burst, and each is tried again a second later.
  ::listen(svr_sock_, kBacklog);
  ::fcntl(svr_sock_, F_SETFL, ::fcntl(svr_sock_, F_GETFL) | O_NONBLOCK);
  return bound;
}

// Without memory to serve with it stops: the probes fail, the worker goes on.
void BoundedHttpServer::run() {
  try {
    while (!stopping_) turn();
  } catch (const std::exception&) {
  }
  while (!connections_.empty()) end(connections_.begin());
}

void BoundedHttpServer::stop() {
  stopping_ = true;
  ::eventfd_write(stop_event_, 1);
}

void BoundedHttpServer::turn() {
  const auto began = steady_clock::now();
  auto until = connections_.empty() ? began + std::chrono::hours(1) : connections_.front().deadline;
  const bool accepts = began >= accept_not_before_;
  if (!accepts) until = std::min(until, accept_not_before_);
  std::vector<pollfd> waited = {{stop_event_, POLLIN, 0},
                                {accepts ? static_cast<int>(svr_sock_) : -1, POLLIN, 0}};
  for (const Connection& connection : connections_)
    waited.push_back(
        {connection.socket, static_cast<short>(connection.answered ? POLLOUT : POLLIN), 0});
  const auto left = std::chrono::ceil<milliseconds>(until - began);
  ::poll(waited.data(), waited.size(), static_cast<int>(std::max(left, milliseconds(0)).count()));
  const auto now = steady_clock::now();
  auto polled = waited.cbegin() + 2;
  for (auto connection = connections_.begin(); connection != connections_.end(); ++polled) {
    const bool goes_on = polled->revents == 0 || serve(*connection);
    if (goes_on && now < connection->deadline)
      ++connection;
    else
      connection = end(connection);
  }
  if (waited[1].revents != 0) accept_some();
  bound_unsent();
}

void BoundedHttpServer::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    const int socket = ::accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      if (connections_.size() == kMaxConnections) end(connections_.begin());
      connections_.push_back({socket, steady_clock::now() + kConnectionDeadline});
    } else if (would_wait(socket)) {
      return;
    } else if (errno != ECONNABORTED) {
      accept_not_before_ = steady_clock::now() + kAcceptAgainAfter;
      return;
    }
  }
}

// Reads or writes what can be without waiting. False where the connection is at its end.
bool BoundedHttpServer::serve(Connection& connection) {
  if (!connection.answered) {
    std::array<char, kMaxRequestBytes> buffer{};
    const ssize_t got = ::recv(connection.socket, buffer.data(),
                               kMaxRequestBytes - connection.request.size(), MSG_DONTWAIT);
    if (got <= 0) return would_wait(got);
    connection.request.append(buffer.data(), static_cast<std::size_t>(got));
    if (connection.request.find("\r\n\r\n") == std::string::npos)
      return connection.request.size() < kMaxRequestBytes;
    answer(connection);
  }
  const ssize_t sent = ::send(connection.socket, connection.answer.data(), connection.answer.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return would_wait(sent);
  connection.answer.erase(0, static_cast<std::size_t>(sent));
  return !connection.answer.empty();
}

// An exception here is the client's connection, never the worker.
void BoundedHttpServer::answer(Connection& connection) {
  ExchangeStream stream(connection.request);
  const auto before_routing = [](httplib::Request& request) { request.ranges.clear(); };
  bool closed = false;
  try {
    [&](auto& self) {
      if constexpr (requires { self.process_request(stream, true, closed, before_routing); })
        self.process_request(stream, true, closed, before_routing);
      else
        self.process_request(stream, "", 0, "", 0, true, closed, before_routing);
    }(*this);
    connection.answer = stream.take_answer();
  } catch (const std::exception&) {
  }
  connection.answered = true;
}

// Clients that ask and do not read must not fill the memory.
void BoundedHttpServer::bound_unsent() {
  std::size_t unsent = 0;
  for (const Connection& connection : connections_) unsent += connection.answer.size();
  for (auto oldest = connections_.begin();
       unsent > kMaxUnsentBytes && oldest != std::prev(connections_.end());) {
    unsent -= oldest->answer.size();
    oldest = oldest->answered ? end(oldest) : std::next(oldest);
  }
}

BoundedHttpServer::Connections::iterator BoundedHttpServer::end(Connections::iterator connection) {
  ::shutdown(connection->socket, SHUT_RDWR);
  ::close(connection->socket);
  return connections_.erase(connection);
}

}  // namespace hapax::observe
