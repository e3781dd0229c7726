#include "gate/connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <limits>

#include "gate/problem.hpp"
#include "gate/tls.hpp"

namespace hapax::gate {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kFirstBytes = 1024;  // of an idle connection
constexpr std::size_t kProgress = 4096;    // bytes of a body
constexpr std::size_t kDiscard = std::size_t{16} << 10;
constexpr std::size_t kMaxDiscarded = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kLinger{2000};
constexpr std::chrono::milliseconds kLingerOfDrain{300};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::optional<config::Address> address_of(const asio::ip::tcp::socket& socket) {
  beast::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  const std::string address = endpoint.address().to_string();
  return config::parse_address(address.substr(0, address.find('%')));  // without its link
}

// Beast keeps a header, the framing of a chunk, and a trailer in it until they are whole.
std::size_t most_unread(const config::GateLimits& limits) {
  return std::max(limits.header_bytes, kDiscard);
}

const char* known_method(http::verb method) {
  switch (method) {
    case http::verb::get: return "GET";
    case http::verb::head: return "HEAD";
    case http::verb::post: return "POST";
    case http::verb::put: return "PUT";
    case http::verb::patch: return "PATCH";
    case http::verb::delete_: return "DELETE";
    case http::verb::options: return "OPTIONS";
    default: return traces::kOtherMethod;
  }
}

bool says_continue(const Head& head) {
  return head.is_http_1_1 && std::ranges::any_of(head.headers, [](const auto& header) {
           return header.first == "expect";
         });
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, Shared& shared)
    : shared_(shared),
      stream_(std::move(socket), shared.setup.tls ? shared.setup.tls->context() : nullptr),
      buffer_(most_unread(shared.setup.gate.limits)),
      peer_(address_of(stream_.tcp().socket())) {
  ++shared_.connections;
}

Connection::~Connection() {
  leave();
  shared_.body_bytes -= room_;
  if (executing_) --shared_.executing;
  --shared_.connections;
}

void Connection::end() {
  leave();
  shared_.body_bytes -= std::exchange(room_, 0);
  stream_.tcp().close();
}

void Connection::enter(std::list<Connection*>& list) {
  leave();
  place_ = list.insert(list.end(), this);
  list_ = &list;
  since_ = Clock::now();
}

void Connection::leave() {
  if (list_ != nullptr) list_->erase(place_);
  list_ = nullptr;
}

std::size_t Connection::route() const { return route_.value_or(shared_.metrics.size() - 1); }

void Connection::start() {
  if (!stream_.is_tls()) return await_request();
  began_ = Clock::now();
  enter(shared_.beginning);
  stream_.tcp().expires_after(shared_.setup.gate.limits.header_time);
  stream_.async_handshake([self = shared_from_this()](Error error) { self->on_handshake(error); });
}

void Connection::on_handshake(Error error) {
  leave();
  if (error) return shared_.setup.metrics.gate_handshake_failed();
  certificate_ = stream_.certificate();
  await_request();
}

// Holds nothing but a small buffer, until the first byte comes.
void Connection::await_request() {
  parser_.reset();
  request_.reset();
  route_.reset();
  response_.reset();
  shared_.body_bytes -= std::exchange(room_, 0);
  close_ = head_only_ = false;
  if (shared_.draining && served_ > 0) return linger();
  if (buffer_.size() > 0) return read_header();
  buffer_.shrink_to_fit();
  enter(shared_.idle);
  stream_.tcp().expires_after(shared_.setup.gate.limits.idle_time);
  stream_.async_read_some(buffer_.prepare(kFirstBytes),
                          [self = shared_from_this()](Error error, std::size_t bytes) {
                            self->leave();
                            if (error) return;  // the last one who knows it closes it
                            self->buffer_.commit(bytes);
                            self->read_header();
                          });
}

void Connection::read_header() {
  const config::GateLimits& limits = shared_.setup.gate.limits;
  began_ = Clock::now();
  enter(shared_.beginning);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  // The caller comes first. Without a limit, Beast 1.74 refuses all.
  parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
  stream_.tcp().expires_after(limits.header_time);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](Error error, std::size_t) { self->on_header(error); });
}

void Connection::on_header(Error error) {
  if (error) return refuse(error);
  ++served_;
  enter(shared_.reading);
  on_head();
}

void Connection::on_head() {
  const config::GateLimits& limits = shared_.setup.gate.limits;
  Head head = head_of(parser_->get());
  head.peer = peer_;
  head.certificate = certificate_;
  const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
  const bool waits_for_continue = has_body && buffer_.size() == 0 && says_continue(head);
  head_only_ = head.method == "HEAD";
  close_ = !parser_->get().keep_alive() || served_ >= limits.requests;
  if (shared_.spans.is_on()) begin_span(head);
  if (auto refusal = shared_.setup.admission.malformed(head)) {
    if (served_as_) begin_span({});  // who may not call does not decide what is traced
    close_ = true;
    return answer(*std::move(refusal));
  }
  auto admitted = shared_.setup.admission.admit(std::move(head));
  if (auto* refusal = std::get_if<Answer>(&admitted)) {
    if (refusal->response.status == 401 || refusal->response.status == 403)
      if (served_as_) begin_span({});
    close_ = close_ || has_body;  // which is not read
    return answer(std::move(*refusal));
  }
  request_ = std::get<Request>(std::move(admitted));
  if (served_as_) request_->trace = served_as_->trace;
  route_ = request_->route;
  if (parser_->content_length().value_or(0) > limits.body_bytes) return refuse_too_large();
  if (!make_room(parser_->content_length().value_or(0))) return refuse_for_room();
  if (waits_for_continue)
    go_on();
  else
    read_body();
}

// Ends connections of slow clients if it must. Else a few that stop before the last byte of a body
// would keep all others from sending one.
bool Connection::make_room(std::size_t bytes) {
  while (shared_.body_bytes - room_ + bytes > shared_.setup.gate.limits.bodies_bytes) {
    const auto slow = std::ranges::find_if(shared_.reading, [this](const Connection* one) {
      return one != this && one->room_ > 0 && one->is_slow();
    });
    if (slow == shared_.reading.end()) return false;
    (*slow)->end();
  }
  return true;
}

// For the bytes that are there: one that announces many and sends none takes no room from others.
bool Connection::keep_room(std::size_t bytes) {
  if (!make_room(bytes)) return false;
  shared_.body_bytes += bytes - room_;
  room_ = bytes;
  return true;
}

void Connection::refuse_too_large() {
  close_ = true;
  answer(refused(
      413, "body-too-large", "The body is too large",
      "At most " + std::to_string(shared_.setup.gate.limits.body_bytes) + " bytes are taken."));
}

void Connection::refuse_for_room() {
  close_ = true;
  answer(unavailable("There is no room for the body. Try again with the same key."));
}

void Connection::go_on() {
  stream_.tcp().expires_after(shared_.setup.gate.limits.body_time);
  asio::async_write(stream_, asio::buffer(kContinue),
                    [self = shared_from_this()](Error error, std::size_t) {
                      if (!error) self->read_body();
                    });
}

// One time for the whole body, however slowly it trickles.
void Connection::read_body() {
  stream_.tcp().expires_after(shared_.setup.gate.limits.body_time);
  parser_->body_limit(shared_.setup.gate.limits.body_bytes);
  parser_->eager(true);
  read_some();
}

void Connection::read_some() {
  if (parser_->is_done()) {
    request_->body = std::move(parser_->get().body());
    return submit();
  }
  http::async_read_some(stream_, buffer_, *parser_,
                        [self = shared_from_this()](Error error, std::size_t) {
                          if (error) return self->refuse(error);
                          const std::size_t before = self->room_;
                          if (!self->keep_room(self->parser_->get().body().size()))
                            return self->refuse_for_room();
                          if (self->room_ / kProgress > before / kProgress)
                            self->enter(self->shared_.reading);
                          self->read_some();
                        });
}

void Connection::submit() {
  leave();
  executing_ = true;
  ++shared_.executing;
  stream_.tcp().expires_never();
  auto ticket = std::make_shared<Ticket>();
  ticket->request = *std::exchange(request_, std::nullopt);
  ticket->done = [self = shared_from_this(), &io = shared_.io](Answer given) mutable {
    asio::post(io, [self = std::move(self), given = std::move(given)]() mutable {
      self->answer(std::move(given));
    });
  };
  shared_.setup.desk.submit(std::move(ticket));
}

void Connection::answer(Answer answer) {
  leave();
  if (std::exchange(executing_, false)) --shared_.executing;
  account(answer.how, answer.response.status);
  shared_.body_bytes -= std::exchange(room_, 0);
  close_ = close_ || shared_.draining;
  write(answer);
}

void Connection::begin_span(const Head& head) {
  std::vector<Header> headers;
  for (const auto& [name, value] : head.headers)
    if (name == traces::kTraceparent || name == traces::kTracestate)
      headers.push_back({name, value});
  served_as_ = shared_.spans.begin(headers);
}

// `status`: 0 if the client was too slow for an answer.
void Connection::account(observe::Answered how, int status) {
  const auto now = Clock::now();
  shared_.metrics[route()].answered(how, now - began_);
  if (!served_as_) return;
  shared_.spans.end(*std::exchange(served_as_, {}),
                    {.route = route_ ? shared_.setup.gate.routes[*route_].path : std::string(),
                     .http = {.method = known_method(parser_->get().method()),
                              .scheme = stream_.is_tls() ? "https" : "http",
                              .status = status},
                     .outcome = observe::name_of(how),
                     .error = status == 0     ? "timeout"
                              : status >= 500 ? std::to_string(status)
                                              : "",
                     .began = began_,
                     .ended = now});
}

void Connection::write(const Answer& answer) {
  response_ = http_of(answer, shared_.setup.gate, head_only_);
  enter(shared_.writing);
  stream_.tcp().expires_after(shared_.setup.gate.limits.body_time);
  std::visit(
      [this](auto& message) {
        message.keep_alive(!close_);
        http::async_write(stream_, message, [self = shared_from_this()](Error error, std::size_t) {
          self->on_written(error);
        });
      },
      *response_);
}

void Connection::on_written(Error error) {
  if (error) return;
  if (close_) return linger();
  await_request();
}

// The bytes cannot be read as a request. A client that has sent none, or has gone, gets no answer.
void Connection::refuse(Error error) {
  close_ = true;
  if (error == http::error::end_of_stream) return linger();
  if (error == beast::error::timeout) {
    // The stream is closed already: a client that trickles is not waited for.
    account(observe::Answered::refused, 0);
    return;
  }
  if (error == http::error::body_limit) return refuse_too_large();
  if (error == http::error::header_limit)
    return answer(refused(
        431, "header-too-large", "The header is too large",
        "At most " + std::to_string(shared_.setup.gate.limits.header_bytes) + " bytes are taken."));
  if (error == http::error::buffer_overflow)
    return answer(refused(400, "bad-request", "The request cannot be understood",
                          "The framing of a chunk, or the trailer, is too large."));
  if (error.category() != http::make_error_code(http::error::bad_method).category()) return;
  answer(refused(400, "bad-request", "The request cannot be understood",
                 "It is not HTTP/1.1: " + error.message() + "."));
}

// What the client still sends is read for a while: closing at once would reset the connection, and
// the client might lose the answer.
void Connection::linger() {
  enter(shared_.leaving);
  stream_.tcp().expires_after(shared_.draining ? kLingerOfDrain : kLinger);
  if (!stream_.is_tls()) return shut_down();
  stream_.async_farewell([self = shared_from_this()](Error) { self->shut_down(); });
}

void Connection::shut_down() {
  Error ignored;
  stream_.tcp().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  discarded_ = 0;
  discard();
}

void Connection::discard() {
  const auto on_read = [self = shared_from_this()](Error error, std::size_t bytes) {
    self->discarded_ += bytes;
    if (!error && self->discarded_ < kMaxDiscarded) self->discard();
  };
  stream_.tcp().async_read_some(buffer_.prepare(kDiscard), on_read);
}

}  // namespace hapax::gate
