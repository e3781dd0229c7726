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
#include "observe/request_size.hpp"

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

BoundedHttpServer::BoundedHttpServer(Answer answer, const HttpLimits& limits)
    : limits_(limits), stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // Before routing, hence before httplib would read a body.
  set_pre_routing_handler([answer = std::move(answer), posts = limits.body_bytes > 0](
                              const httplib::Request& request, httplib::Response& response) {
    if (request.method == "GET" || request.method == "HEAD" ||
        (posts && request.method == "POST")) {
      answer(request, response);
    } else {
      response.status = 405;
      response.set_header("Allow", posts ? "GET, HEAD, POST" : "GET, HEAD");
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
    if (limits_.threads > 0)
      threads_ = std::make_unique<AnsweringThreads>(
          limits_.threads, [this](const std::string& request) { return answer(request); },
          [this] { ::eventfd_write(stop_event_, 1); });
    while (!stopping_) turn();
  } catch (const std::exception&) {
  }
  threads_.reset();
  while (!connections_.empty()) end(connections_.begin());
}

void BoundedHttpServer::stop() {
  stopping_ = true;
  ::eventfd_write(stop_event_, 1);
}

void BoundedHttpServer::turn() {
  const auto began = steady_clock::now();
  auto until = began + std::chrono::hours(1);
  for (const Connection& connection : connections_) until = std::min(until, connection.deadline);
  const bool accepts = began >= accept_not_before_;
  if (!accepts) until = std::min(until, accept_not_before_);
  std::vector<pollfd> waited = {
      {stop_event_, POLLIN, 0},
      {accepts && has_room() ? static_cast<int>(svr_sock_) : -1, POLLIN, 0}};
  for (const Connection& connection : connections_)
    waited.push_back({connection.socket,
                      static_cast<short>(connection.state == State::asking   ? POLLIN
                                         : connection.state == State::taking ? POLLOUT
                                                                             : POLLRDHUP),
                      0});
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
  if (waited[0].revents != 0 && !stopping_) take_answers();
  if (waited[1].revents != 0) accept_some();
  bound_unsent();
}

BoundedHttpServer::Connections::iterator BoundedHttpServer::oldest_to_end() {
  return std::ranges::find_if(connections_,
                              [](const Connection& one) { return one.state != State::answering; });
}

bool BoundedHttpServer::has_room() {
  return connections_.size() < kMaxConnections || oldest_to_end() != connections_.end();
}

void BoundedHttpServer::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce && has_room(); ++i) {
    // Those that came in this turn are read before one of them makes room.
    if (i > 0 && connections_.size() == kMaxConnections) return;
    const int socket = ::accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      if (connections_.size() == kMaxConnections) end(oldest_to_end());
      connections_.push_back({++last_id_, socket, steady_clock::now() + limits_.to_ask});
    } else if (would_wait(socket)) {
      return;
    } else if (errno != ECONNABORTED) {
      accept_not_before_ = steady_clock::now() + kAcceptAgainAfter;
      return;
    }
  }
}

// Sent at once, before a new connection can push them out: only what a client does not take waits.
// Those whose client has gone meanwhile are dropped.
void BoundedHttpServer::take_answers() {
  eventfd_t count = 0;
  ::eventfd_read(stop_event_, &count);
  if (!threads_) return;
  for (auto& [id, made] : threads_->take()) {
    const auto connection = std::ranges::find(connections_, id, &Connection::id);
    if (connection == connections_.end()) continue;
    begin_taking(*connection, std::move(made));
    if (!send(*connection)) end(connection);
  }
}

// Reads or writes what can be without waiting. False if the connection is at its end.
bool BoundedHttpServer::serve(Connection& connection) {
  if (connection.state == State::answering) return false;  // the client has gone
  return connection.state == State::asking ? receive(connection) : send(connection);
}

bool BoundedHttpServer::receive(Connection& connection) {
  std::array<char, 16384> buffer{};
  const std::size_t most = limits_.head_bytes + limits_.body_bytes - connection.request.size();
  const ssize_t got =
      ::recv(connection.socket, buffer.data(), std::min(buffer.size(), most), MSG_DONTWAIT);
  if (got <= 0) return would_wait(got);
  connection.request.append(buffer.data(), static_cast<std::size_t>(got));
  const RequestSize size = size_of(connection.request, limits_.head_bytes, limits_.body_bytes);
  if (!size.refusal.empty()) {
    begin_taking(connection, size.refusal);
    return send(connection);
  }
  if (!size.whole) return connection.request.size() < limits_.head_bytes + limits_.body_bytes;
  if (threads_) {
    connection.state = State::answering;
    connection.deadline = steady_clock::now() + limits_.to_answer;
    threads_->give(connection.id, std::move(connection.request));
    return true;
  }
  connection.state = State::taking;  // within the same deadline
  connection.answer = answer(connection.request);
  return send(connection);
}

bool BoundedHttpServer::send(Connection& connection) {
  const ssize_t sent = ::send(connection.socket, connection.answer.data(), connection.answer.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return would_wait(sent);
  connection.answer.erase(0, static_cast<std::size_t>(sent));
  return !connection.answer.empty();
}

void BoundedHttpServer::begin_taking(Connection& connection, std::string answer) {
  connection.state = State::taking;
  connection.deadline = steady_clock::now() + limits_.to_take;
  connection.answer = std::move(answer);
}

// An exception here is the client's connection, never the worker.
std::string BoundedHttpServer::answer(const std::string& request) {
  const std::size_t head = request.find("\r\n\r\n") + 4;
  ExchangeStream stream(request);
  const auto before_routing = [&](httplib::Request& parsed) {
    parsed.ranges.clear();
    if (limits_.body_bytes > 0) parsed.body = request.substr(head);
  };
  bool closed = false;
  try {
    [&](auto& self) {
      if constexpr (requires { self.process_request(stream, true, closed, before_routing); })
        self.process_request(stream, true, closed, before_routing);
      else
        self.process_request(stream, "", 0, "", 0, true, closed, before_routing);
    }(*this);
    return stream.take_answer();
  } catch (const std::exception&) {
    return {};
  }
}

// Clients that ask and do not read must not fill the memory.
void BoundedHttpServer::bound_unsent() {
  std::size_t unsent = 0;
  for (const Connection& connection : connections_) unsent += connection.answer.size();
  for (auto oldest = connections_.begin();
       unsent > kMaxUnsentBytes && oldest != std::prev(connections_.end());) {
    unsent -= oldest->answer.size();
    oldest = oldest->state == State::taking ? end(oldest) : std::next(oldest);
  }
}

BoundedHttpServer::Connections::iterator BoundedHttpServer::end(Connections::iterator connection) {
  if (connection->state == State::answering && threads_) threads_->drop(connection->id);
  ::shutdown(connection->socket, SHUT_RDWR);
  ::close(connection->socket);
  return connections_.erase(connection);
}

}  // namespace hapax::observe
