#include "gate/connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "gate/problem.hpp"
#include "key/key_source.hpp"

namespace hapax::gate {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kFirstBytes = 1024;  // of an idle connection
constexpr std::size_t kMaxDiscarded = std::size_t{1} << 20;
constexpr std::chrono::seconds kLinger{2};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::optional<config::Address> address_of(const asio::ip::tcp::socket& socket) {
  beast::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  return config::parse_address(endpoint.address().to_string());
}

std::string lower(beast::string_view name) {
  std::string text(name.data(), name.size());
  std::ranges::transform(text, text.begin(), key::lower_case);
  return text;
}

std::string text_of(beast::string_view view) { return {view.data(), view.size()}; }

Head head_of(const http::request<http::string_body>& message) {
  Head head{
      text_of(message.method_string()), text_of(message.target()), message.version() == 11, {}, {}};
  for (const auto& field : message)
    head.headers.emplace_back(lower(field.name_string()), text_of(field.value()));
  return head;
}

bool says_continue(const Head& head) {
  return head.is_http_1_1 && std::ranges::any_of(head.headers, [](const auto& header) {
           return header.first == "expect";
         });
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, Shared& shared)
    : shared_(shared), stream_(std::move(socket)), peer_(address_of(stream_.socket())) {
  ++shared_.connections;
}

Connection::~Connection() {
  leave_idle();
  shared_.body_bytes -= room_;
  --shared_.connections;
}

void Connection::end() {
  leave_idle();
  stream_.close();
}

void Connection::leave_idle() {
  if (idle_) shared_.idle.erase(*idle_);
  idle_.reset();
}

std::size_t Connection::route() const { return route_.value_or(shared_.metrics.size() - 1); }

// Holds nothing but a small buffer, until the first byte comes.
void Connection::await_request() {
  parser_.reset();
  request_.reset();
  route_.reset();
  response_ = std::monostate();
  shared_.body_bytes -= std::exchange(room_, 0);
  close_ = head_only_ = false;
  if (shared_.draining && served_ > 0) return linger();
  if (buffer_.size() > 0) return read_header();
  buffer_.shrink_to_fit();
  idle_ = shared_.idle.insert(shared_.idle.end(), this);
  stream_.expires_after(shared_.setup.gate.limits.idle_time);
  stream_.async_read_some(buffer_.prepare(kFirstBytes),
                          [self = shared_from_this()](Error error, std::size_t bytes) {
                            self->leave_idle();
                            if (error) return;  // the last one who knows it closes it
                            self->buffer_.commit(bytes);
                            self->read_header();
                          });
}

void Connection::read_header() {
  const config::GateLimits& limits = shared_.setup.gate.limits;
  began_ = Clock::now();
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser_->body_limit(limits.body_bytes);
  stream_.expires_after(limits.header_time);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](Error error, std::size_t) { self->on_header(error); });
}

void Connection::on_header(Error error) {
  if (error) return refuse(error);
  ++served_;
  on_head();
}

void Connection::on_head() {
  const config::GateLimits& limits = shared_.setup.gate.limits;
  Head head = head_of(parser_->get());
  head.peer = peer_;
  const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
  const bool waits_for_continue = has_body && buffer_.size() == 0 && says_continue(head);
  head_only_ = head.method == "HEAD";
  close_ = !parser_->get().keep_alive() || served_ >= limits.requests;
  if (auto refusal = shared_.setup.admission.malformed(head)) {
    close_ = true;
    return answer(*std::move(refusal));
  }
  auto admitted = shared_.setup.admission.admit(std::move(head));
  if (auto* refusal = std::get_if<Answer>(&admitted)) {
    close_ = close_ || has_body;  // which is not read
    return answer(std::move(*refusal));
  }
  request_ = std::get<Request>(std::move(admitted));
  route_ = request_->route;
  if (!keep_room()) {
    close_ = true;
    return answer(unavailable("There is no room for the body. Try again with the same key."));
  }
  if (waits_for_continue)
    go_on();
  else
    read_body();
}

// Before a byte of the body is read. False: there is none.
bool Connection::keep_room() {
  const config::GateLimits& limits = shared_.setup.gate.limits;
  const std::size_t bytes =
      parser_->chunked() ? limits.body_bytes : parser_->content_length().value_or(0);
  if (shared_.body_bytes + bytes > limits.bodies_bytes) return false;
  room_ = bytes;
  shared_.body_bytes += bytes;
  return true;
}

void Connection::go_on() {
  stream_.expires_after(shared_.setup.gate.limits.body_time);
  asio::async_write(stream_, asio::buffer(kContinue),
                    [self = shared_from_this()](Error error, std::size_t) {
                      if (!error) self->read_body();
                    });
}

// One time for the whole body, however slowly it trickles.
void Connection::read_body() {
  stream_.expires_after(shared_.setup.gate.limits.body_time);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](Error error, std::size_t) { self->on_body(error); });
}

void Connection::on_body(Error error) {
  if (error) return refuse(error);
  request_->body = std::move(parser_->get().body());
  submit();
}

void Connection::submit() {
  stream_.expires_never();
  auto ticket = std::make_shared<Ticket>();
  ticket->request = *std::move(request_);
  request_.reset();
  ticket->done = [self = shared_from_this(), &io = shared_.io](Answer given) {
    asio::post(io, [self, given = std::move(given)]() mutable { self->answer(std::move(given)); });
  };
  shared_.setup.desk.submit(std::move(ticket));
}

void Connection::answer(Answer answer) {
  shared_.metrics[route()].answered(answer.how, Clock::now() - began_);
  shared_.body_bytes -= std::exchange(room_, 0);
  close_ = close_ || shared_.draining;
  write(answer);
}

void Connection::write(const Answer& answer) {
  const config::Gate& gate = shared_.setup.gate;
  const auto fill = [&](auto& message) {
    message.version(11);
    message.result(static_cast<unsigned>(answer.response.status));
    message.set(
        http::field::date,
        http_date(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())));
    for (const auto& [name, value] : answer.response.headers) message.insert(name, value);
    if (answer.is_stored()) {
      const auto lifetime = std::chrono::ceil<std::chrono::seconds>(gate.retention).count();
      message.set("Idempotency-Key-Lifetime", std::to_string(lifetime));
      message.set("Idempotency-Key-Expires", answer.expires);
    }
    if (answer.how == observe::Answered::replayed) message.set("Idempotent-Replayed", "true");
    if (!gate.rules.empty() && answer.response.status >= 400 && !answer.is_stored())
      message.insert(http::field::link, "<" + gate.rules + ">; rel=\"describedby\"");
    message.keep_alive(!close_);
  };
  if (head_only_) {
    Bare& message = response_.emplace<Bare>();
    fill(message);
    message.content_length(answer.response.body.size());
    return send(message);
  }
  Text& message = response_.emplace<Text>();
  fill(message);
  message.body() = answer.response.body;
  message.prepare_payload();
  send(message);
}

template <class Message>
void Connection::send(Message& message) {
  stream_.expires_after(shared_.setup.gate.limits.body_time);
  http::async_write(stream_, message, [self = shared_from_this()](Error error, std::size_t) {
    self->on_written(error);
  });
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
    shared_.metrics[route()].answered(observe::Answered::refused, Clock::now() - began_);
    return;
  }
  if (error == http::error::body_limit)
    return answer(refused(
        413, "body-too-large", "The body is too large",
        "At most " + std::to_string(shared_.setup.gate.limits.body_bytes) + " bytes are taken."));
  if (error == http::error::header_limit)
    return answer(refused(
        431, "header-too-large", "The header is too large",
        "At most " + std::to_string(shared_.setup.gate.limits.header_bytes) + " bytes are taken."));
  if (error.category() != http::make_error_code(http::error::bad_method).category()) return;
  answer(refused(400, "bad-request", "The request cannot be understood",
                 "It is not HTTP/1.1: " + error.message() + "."));
}

// What the client still sends is read for a while: closing at once would reset the connection, and
// the client might lose the answer.
void Connection::linger() {
  Error ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  discarded_ = 0;
  stream_.expires_after(kLinger);
  discard();
}

void Connection::discard() {
  stream_.async_read_some(buffer_.prepare(std::size_t{16} << 10),
                          [self = shared_from_this()](Error error, std::size_t bytes) {
                            self->discarded_ += bytes;
                            if (!error && self->discarded_ < kMaxDiscarded) self->discard();
                          });
}

}  // namespace hapax::gate
