// A handler whose effect is not in PostgreSQL: a payment gateway, an e-mail service, another
// company's API. PostgreSQL cannot roll such a call back, so hapax promises less. It repeats a call
// only if `routes[].outside.repeat` declares that the other side tolerates it. It finds and names
// each call whose outcome is unknown, and an operator decides about it.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
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

// For hapax: what Call::step asks for. Its functions throw as Call::step does. Thread safety: none.
class CallSteps {
 public:
  virtual ~CallSteps() = default;
  // The kept answer of the step, as JSON. Nothing: none is kept.
  virtual std::optional<std::string> kept(std::string_view name) = 0;
  // As kept(). If no answer is kept, the step runs.
  // Throws: std::logic_error, if it was begun before.
  virtual std::optional<std::string> begin(std::string_view name) = 0;
  virtual std::string key_of(std::string_view name) = 0;
  virtual void keep(std::string_view name, const std::string& answer) = 0;
  // The step has surely sent nothing, or was refused.
  virtual void not_done(std::string_view name) = 0;
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
    CallSteps* steps = nullptr;
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

  // Runs a part of the call that has an answer of its own, and keeps that answer before it returns.
  // If an earlier call of the operation has kept an answer of the step, returns that one and does
  // not run `part`. `part` takes step_key(name) as a std::string_view, and returns the answer as
  // JSON.
  // `name`: 1 to 200 bytes of printable UTF-8, without a colon at the beginning; for one step of a
  //   call.
  // Throws: what `part` throws. NotCalled, if the step cannot begin (PostgreSQL is away, the lease
  //   is over) and no other step of this call is in doubt. std::runtime_error, if one is in doubt,
  //   if the answer cannot be kept, or if another worker has the key. Do not catch these:
  //   `outside.repeat` decides what follows. std::logic_error, if the name is wrong, or was used
  //   before in this call.
  // Blocks: as `part`; and until PostgreSQL has committed the answer, but at most 5 s after the
  //   call was asked to stop.
  // Thread safety: one thread at a time.
  template <std::invocable<std::string_view> Part>
  [[gnu::visibility("hidden")]] nlohmann::json step(std::string_view name, Part&& part) const {
    if (const auto answer = steps().begin(name)) return nlohmann::json::parse(*answer);
    const std::string key = step_key(name);
    const std::string answer = detail::answer_text([&] {
      try {
        return nlohmann::json(std::invoke(std::forward<Part>(part), std::string_view(key)));
      } catch (const NotCalled&) {
        steps().not_done(name);
        throw;
      } catch (const Reject&) {
        steps().not_done(name);
        throw;
      }
    }());
    steps().keep(name, answer);
    return nlohmann::json::parse(answer);
  }

  // What to hand on as the idempotency key of a step: 64 hexadecimal digits, the same for each call
  // of the operation. Throws: std::logic_error, if the name is wrong.
  std::string step_key(std::string_view name) const { return steps().key_of(name); }

  // The kept answer of a step, for `reconcile`. Nothing: none is kept, so the step may have
  // happened or not. If the other side has it, keep what it tells: `call.step(name, …)` in
  // `reconcile`, too. Throws, blocks, thread safety: as step().
  [[gnu::visibility("hidden")]] std::optional<nlohmann::json> kept(std::string_view name) const {
    const auto answer = steps().kept(name);
    return answer ? std::optional(nlohmann::json::parse(*answer)) : std::nullopt;
  }

 private:
  CallSteps& steps() const {
    if (parts_.steps == nullptr)
      throw std::logic_error("this Call was made by hand without Parts::steps, so it has no steps");
    return *parts_.steps;
  }

  Parts parts_;
};

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
