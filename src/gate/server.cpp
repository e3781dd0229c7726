#include "gate/server.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "gate/connection.hpp"
#include "gate/open_files.hpp"
#include "gate/problem.hpp"
#include "observe/log.hpp"

namespace hapax::gate {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr std::chrono::milliseconds kTick{20};
constexpr std::chrono::milliseconds kAcceptAgain{100};  // after it was refused
constexpr std::chrono::milliseconds kReadOfDrain{1000};
constexpr int kBacklog = 1024;

[[noreturn]] void cannot_listen(const config::Listen& listen, const std::string& why) {
  throw std::runtime_error("gate.listen: cannot listen on " + listen.host + ":" +
                           std::to_string(listen.port) + ": " + why);
}

std::size_t most_connections(const config::Gate& gate) {
  const std::size_t files = open_files();
  const std::size_t most = connections_that_fit(gate, files);
  if (most < gate.limits.connections)
    observe::log::warning("few_open_files", {{"open_files", files}, {"connections", most}},
                          "this process may open so few files that it takes fewer connections "
                          "than gate.limits.connections; raise its hard limit (LimitNOFILE)");
  return most;
}

}  // namespace

class Server::Running {
 public:
  explicit Running(const ServerSetup& setup)
      : setup_(setup),
        most_(most_connections(setup.gate)),
        shared_{setup_, io_},
        acceptor_(io_),
        accept_later_(io_),
        tick_(io_) {
    for (const config::GateRoute& route : setup.gate.routes)
      shared_.metrics.push_back(setup.metrics.gate(route.path));
    shared_.metrics.push_back(setup.metrics.gate(""));
    listen();
    accept();
    tick();
    thread_ = std::jthread([this] { serve(); });
  }

  ~Running() {
    io_.stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  std::uint16_t port() const { return port_; }

  bool drain(std::chrono::milliseconds at_most) {
    asio::post(io_, [this] {
      shared_.draining = true;
      Error ignored;
      acceptor_.close(ignored);
      end_all(shared_.idle);
      end_reading_ = Clock::now() + kReadOfDrain;
    });
    sync::Lock lock(mutex_);
    const auto until = Clock::now() + at_most;
    while (!drained_)
      if (drained_there_.wait_until(lock.waitable(), until) == std::cv_status::timeout) break;
    return drained_ || answered_;
  }

 private:
  static void end_all(std::list<Connection*>& connections) {
    while (!connections.empty()) connections.front()->end();
  }

  // Runs until the server ends. If a connection's handler throws, that connection ends, because
  // only the handler held it. The exception's text may quote a request.
  void serve() {
    for (;;) try {
        io_.run();
        return;
      } catch (const std::exception&) {
        observe::log::error("connection_failed", {},
                            "a connection was ended by an exception; the gate goes on");
      }
  }

  void listen() {
    const config::Listen& to = setup_.gate.listen;
    try {
      tcp::resolver resolver(io_);
      const auto found = resolver.resolve(to.host, std::to_string(to.port));
      const tcp::endpoint endpoint = found.begin()->endpoint();
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen(kBacklog);
      port_ = acceptor_.local_endpoint().port();
    } catch (const boost::system::system_error& error) {
      cannot_listen(to, error.code().message());
    }
  }

  void accept() {
    acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) return accept_later(error);
      accept();
      take(std::move(socket));
    });
  }

  // Most likely there are no file descriptors left, because handlers or libraries have many. Linux
  // tells so before a connection comes. So one connection ends, and its file is for the next one.
  void accept_later(const Error& error) {
    if (error == asio::error::no_descriptors && make_room()) return accept();
    if (std::exchange(said_, true) == false)
      observe::log::warning("accept_failed", {{"error", error.message()}},
                            "a connection cannot be accepted");
    accept_later_.expires_after(kAcceptAgain);
    accept_later_.async_wait([this](const Error& cancelled) {
      if (!cancelled && acceptor_.is_open()) accept();
    });
  }

  void take(tcp::socket socket) {
    Error ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (shared_.connections >= most_ && !make_room()) return;  // the new one is not read at all
    std::make_shared<Connection>(std::move(socket), shared_)->start();
  }

  // Ends a connection of a slow client, or one that has its answer. False: all are busy.
  bool make_room() {
    Connection* one = nullptr;
    for (const auto* list : {&shared_.idle, &shared_.leaving})
      if (!list->empty()) one = list->front();
    for (const auto* list : {&shared_.beginning, &shared_.reading, &shared_.writing})
      if (!list->empty() && list->front()->is_slow()) one = list->front();
    if (one != nullptr) one->end();
    return one != nullptr;
  }

  void tick() {
    tick_.expires_after(kTick);
    tick_.async_wait([this](const Error& cancelled) {
      if (cancelled) return;
      tick();
      setup_.desk.expire(Clock::now());
      const Desk::Counts counts = setup_.desk.counts();
      setup_.metrics.gate_has(shared_.connections, counts.queued, counts.waiting,
                              shared_.body_bytes);
      if (shared_.draining) drain_on();
    });
  }

  // A client that sends slowly has time to finish its request, but only a part of the drain.
  void drain_on() {
    if (Clock::now() >= end_reading_) {
      end_all(shared_.idle);  // new ones that have sent nothing
      end_all(shared_.beginning);
      end_all(shared_.reading);
    }
    const sync::Lock lock(mutex_);
    answered_ = shared_.executing == 0;
    drained_ = shared_.connections == 0;
    if (drained_) drained_there_.notify_all();
  }

  const ServerSetup setup_;
  const std::size_t most_;  // connections
  Shared shared_;           // before io_, with which the last connections end
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_later_;
  asio::steady_timer tick_;
  std::uint16_t port_ = 0;
  bool said_ = false;  // on the server's thread
  sync::Mutex mutex_;
  std::condition_variable drained_there_;
  bool drained_ HAPAX_GUARDED_BY(mutex_) = false;
  bool answered_ HAPAX_GUARDED_BY(mutex_) = false;  // all requests that ran have their answers
  Clock::time_point end_reading_{};                 // on the server's thread
  std::jthread thread_;                             // last: it uses all of the above
};

Server::Server(const ServerSetup& setup) : running_(std::make_unique<Running>(setup)) {}
Server::~Server() = default;

std::uint16_t Server::port() const { return running_->port(); }
bool Server::drain(std::chrono::milliseconds at_most) { return running_->drain(at_most); }

}  // namespace hapax::gate
