// A handler whose effect is not in PostgreSQL: a payment gateway, an e-mail service, another
// company's API. PostgreSQL cannot roll such a call back, so hapax promises less. It repeats a call
// only if `routes[].outside.repeat` declares that the other side tolerates it. It finds and names
// each call whose outcome is unknown, and an operator decides about it.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/handler.hpp"

namespace hapax {

// `call` throws it if it knows that the other side has received nothing: no connection, a name that
// does not resolve. The route's retry policy tries the message again later, under each `repeat`.
class NotCalled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One call to the other side, as `call` and `reconcile` see it. Valid until that function returns;
// a copied stop token may be asked later, too.
//
// Thread safety: any number of threads may read it.
class Call {
 public:
  struct Parts {
    std::string_view key;
    std::int64_t token = 0;
    std::chrono::steady_clock::time_point deadline;
    std::stop_token stop_token;
    std::string_view traceparent = {};
  };
  explicit Call(Parts parts) : parts_(std::move(parts)) {}

  // 64 hexadecimal digits, the same for each call of the operation. Hand it to the other side as
  // its idempotency key. hapax derives it from scope, tenant and the operation's key; it reveals
  // none of them.
  std::string_view key() const { return parts_.key; }

  // A fencing token. It only grows from one call of the operation to the next, also after a
  // failover, as long as PostgreSQL's clock does not go back. If a resource refuses smaller tokens
  // than it has seen, it is safe from a process that froze before it sent.
  std::int64_t token() const { return parts_.token; }

  // The call's begin plus `routes[].outside.max_duration`. Give it to your client as its time-out.
  // At the deadline hapax asks the call to stop. If the call does not return within 10 s more,
  // hapax ends the process.
  std::chrono::steady_clock::time_point deadline() const { return parts_.deadline; }

  // Asks the call to stop: at the deadline, shortly before `worker.shutdown_timeout` is over, and
  // before the worker's lease ends if PostgreSQL does not renew it.
  // A std::stop_callback on it runs in another thread. Let it only tell the call to return: it must
  // not throw, which ends the process, and it should not block. One that blocks delays other calls'
  // stops a little, and this call until it returns. Remove it before the call returns.
  const std::stop_token& stop_token() const { return parts_.stop_token; }

  // The W3C traceparent of the call's span, to hand on with your request to the other side. If
  // hapax sends no span, that of the message's producer. "" if there is none.
  std::string_view traceparent() const { return parts_.traceparent; }

 private:
  Parts parts_;
};

namespace detail {

// An answer as hapax keeps it. Without recursion until its depth is known, because a few thousand
// levels would use up the stack. Throws: std::invalid_argument if it nests too deep.
[[gnu::visibility("hidden")]] inline std::string answer_text(const nlohmann::json& answer) {
  std::vector<std::pair<const nlohmann::json*, std::size_t>> left = {{&answer, 1}};
  while (!left.empty()) {
    const auto [at, depth] = left.back();
    left.pop_back();
    if (at->is_structured() && depth > kMaxJsonDepth)
      throw std::invalid_argument("the answer nests deeper than " + std::to_string(kMaxJsonDepth) +
                                  " levels");
    for (const nlohmann::json& part : *at)
      if (part.is_structured()) left.emplace_back(&part, depth + 1);
  }
  // A text that is not UTF-8 is no reason to lose the answer.
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace detail

// What `reconcile` found out about an earlier call.
class Verdict {
 public:
  enum class Kind : std::uint8_t { done, not_done, unknown };

  // It happened, with this answer: `book` runs with it. A text in it that is not UTF-8 is kept with
  // replacement characters. Throws: std::invalid_argument if it nests deeper than kMaxJsonDepth.
  [[gnu::visibility("hidden")]] static Verdict done(const nlohmann::json& answer) {
    return Verdict(Kind::done, detail::answer_text(answer));
  }
  // It did not happen and cannot happen any more: hapax calls again.
  static Verdict not_done() { return Verdict(Kind::not_done, {}); }
  // The other side cannot tell yet: hapax asks again later.
  static Verdict unknown() { return Verdict(Kind::unknown, {}); }

  Kind kind() const { return kind_; }
  const std::string& answer_text() const { return answer_; }  // JSON

 private:
  Verdict(Kind kind, std::string answer) : kind_(kind), answer_(std::move(answer)) {}

  Kind kind_;
  std::string answer_;
};

// Handles the messages of one route in two parts: the call, and the booking of its answer.
//
// Thread safety: one thread at a time uses an instance. Each thread that calls has an instance of
// its own, and so has each lane, so members need no lock. What instances share does.
class OutsideHandler {
 public:
  virtual ~OutsideHandler() = default;

  // As Handler::on_start. There are `outside.concurrency` instances more.
  virtual void on_start(const Setup& /*setup*/) {}

  // Calls the other side, without a transaction and without a connection to PostgreSQL. Returns the
  // answer, which hapax commits before it does anything else with it. A text in it that is not
  // UTF-8 is kept with replacement characters. If PostgreSQL cannot keep the answer (too large,
  // nested too deep), hapax goes on as after an exception.
  // Throws: NotCalled, if surely nothing was sent. Reject, only from an answer: the other side
  //   refused. The message becomes a dead letter, and the operation is never called again.
  //   BadPayload, which message.json() throws, means that nothing was sent: parse before you send.
  //   The message becomes a dead letter, and its replay calls. Any other exception means that the
  //   call may have happened; `outside.repeat` decides what follows.
  // Blocks: may block, until the deadline at most. It should return if a stop is requested.
  virtual nlohmann::json call(const Message& message, const Call& call) = 0;

  // Books the answer, in the transaction that completes the operation. Ordinary effects, published
  // records and the stored result belong here. If it fails, hapax runs it again with the answer
  // that it keeps, and never calls again for it.
  // Throws: as Handler::handle. After Reject, or after `retry.max_attempts`, the message becomes a
  //   dead letter, and the answer stays for `hapax outside decide`.
  // Blocks: as Handler::handle.
  virtual void book(const Message& message, const nlohmann::json& answer, Context& context) = 0;

  // Asks the other side what became of an earlier call. Only for `repeat: queryable`.
  // Throws: any exception; hapax then asks again later.
  // Blocks: as `call`.
  virtual Verdict reconcile(const Message& /*message*/, const Call& /*call*/) {
    throw std::logic_error(
        "this handler does not override reconcile, which `repeat: queryable` needs");
  }

  // For hapax, not to be overridden. JSON crosses to a plugin as text; each side uses its own
  // nlohmann_json.
  [[gnu::visibility("hidden")]] virtual std::string call_for_text(const Message& message,
                                                                  const Call& about) {
    return detail::answer_text(call(message, about));
  }
  [[gnu::visibility("hidden")]] virtual void book_text(const Message& message,
                                                       const std::string& answer,
                                                       Context& context) {
    book(message, nlohmann::json::parse(answer), context);
  }
};

}  // namespace hapax
