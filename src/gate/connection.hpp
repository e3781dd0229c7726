// One connection of a client. Only for server.cpp and connection.cpp: it shows Boost.Beast.
//
// Thread safety: none; all is on the server's thread. A lane hands a ticket's answer over to that
// thread, with all that the ticket had of the connection. That must not end on a lane's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>

#include "gate/http_message.hpp"
#include "gate/server.hpp"
#include "gate/stream.hpp"
#include "traces/requests.hpp"

namespace hapax::gate {

class Connection;

constexpr std::chrono::milliseconds kSlow{1000};  // a client that makes no progress

// What all connections share. On the server's thread.
struct Shared {
  const ServerSetup& setup;
  boost::asio::io_context& io;
  std::vector<observe::GateMetrics> metrics = {};  // by route; last: of none
  traces::Requests spans{setup.tracer};
  // A connection is in one of these, or is executed. The longest there is the first.
  std::list<Connection*> idle = {};
  std::list<Connection*> beginning = {};  // in a handshake or a header
  std::list<Connection*> reading = {};    // a body
  std::list<Connection*> writing = {};    // an answer
  std::list<Connection*> leaving = {};    // has its last answer
  std::size_t connections = 0;
  std::size_t executing = 0;   // of them
  std::size_t body_bytes = 0;  // of all bodies
  bool draining = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, Shared& shared);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves until one side ends it.
  void start();

  // By the time since when it is in its list. In `reading`: since its client last made progress.
  bool is_slow() const { return since_ + kSlow <= Clock::now(); }

  // Closes it at once.
  void end();

 private:
  using Error = boost::beast::error_code;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void on_handshake(Error error);
  void await_request();
  void read_header();
  void on_header(Error error);
  void on_head();
  bool make_room(std::size_t bytes);
  bool keep_room(std::size_t bytes);
  void refuse_for_room();
  void refuse_too_large();
  void go_on();
  void read_body();
  void read_some();
  void submit();
  void answer(Answer answer);
  void begin_span(const Head& head);
  void account(observe::Answered how, int status);
  void write(const Answer& answer);
  void on_written(Error error);
  void refuse(Error error);
  void linger();
  void shut_down();
  void discard();
  void enter(std::list<Connection*>& list);
  void leave();
  std::size_t route() const;

  Shared& shared_;
  Stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<config::Address> peer_;
  std::optional<ClientCertificate> certificate_;
  std::optional<Request> request_;
  std::optional<traces::Served> served_as_;  // nothing: traces are off
  std::optional<std::size_t> route_;
  std::optional<HttpAnswer> response_;      // until it is sent
  std::list<Connection*>* list_ = nullptr;  // the list that it is in
  std::list<Connection*>::iterator place_;
  std::size_t served_ = 0;
  std::size_t room_ = 0;       // of Shared::body_bytes
  std::size_t discarded_ = 0;  // bytes behind the last answer
  bool close_ = false;         // after the answer
  bool executing_ = false;
  bool head_only_ = false;
  Clock::time_point began_{};  // its header, or its handshake
  Clock::time_point since_{};
};

}  // namespace hapax::gate
