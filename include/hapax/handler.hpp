// The interface that users implement: one class that handles one message at a time.
#pragma once

#if __cplusplus < 202002L
#error "hapax needs C++20: compile with -std=c++20, or use hapax_add_handler in CMake"
#endif

#include <concepts>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hapax/context.hpp"
#include "hapax/message.hpp"

namespace hapax {

// What a handler gets once, before its first message.
struct Setup {
  std::string topic;                // of the route; for a gate its path
  std::string options_json = "{}";  // `options` of the route

  // Throws: nlohmann::json::parse_error if options_json is not JSON; hapax's own always is.
  [[gnu::visibility("hidden")]] nlohmann::json options() const {
    return nlohmann::json::parse(options_json);
  }
};

// The result that Context::result stored for an operation.
class StoredResult {
 public:
  explicit StoredResult(std::optional<std::string> text) : text_(std::move(text)) {}

  // JSON as it was stored. Nothing if the handler stored no result.
  const std::optional<std::string>& text() const { return text_; }
  // The same, parsed. JSON's null if the handler stored no result.
  // Throws: nlohmann::json::parse_error if the text is not JSON; what hapax stored always is.
  [[gnu::visibility("hidden")]] nlohmann::json json() const {
    return text_ ? nlohmann::json::parse(*text_) : nlohmann::json();
  }

 private:
  std::optional<std::string> text_;
};

// Handles the messages of one route. Keep state that must survive in PostgreSQL, because a worker
// can die at any time.
//
// A handler may run more than once for a message (after a crash, a retry, a lost partition). Only
// one run's effects commit. So every effect of a handler must go through `context`.
//
// Thread safety: one thread at a time uses an instance. Every lane has an instance of its own, so
// members need no lock. What instances share does.
class Handler {
 public:
  virtual ~Handler() = default;

  // Called once for each instance (one for each lane, one for replays) before its first message.
  // One thread makes these calls, one after the other, before the lanes begin. `hapax check` also
  // calls it, and then nothing else of the handler.
  // Throws: any exception. The worker then does not start (exit code 3). So if a step may succeed
  //   later, try it again here.
  // Blocks: may block for less than 30 s; after that /livez fails.
  virtual void on_start(const Setup& /*setup*/) {}

  // Applies one message. If it returns, hapax commits what it wrote. Both arguments are valid until
  // it returns.
  // Throws: Reject, if the message can never work: it becomes a dead letter. Retry, to try it again
  //   later. After any other exception the route's retry policy tries it again later.
  // Blocks: must take less than `worker.handler_timeout` (in a gate `gate.handler_timeout`), at
  //   which the worker's process ends itself. Between two statements it must take less than
  //   `postgres.idle_in_transaction_timeout`.
  virtual void handle(const Message& message, Context& context) = 0;

  // Whether hapax shall call on_duplicate. Each duplicate then costs a transaction that writes.
  // Throws: nothing, or the partition halts (`unexpected_error`).
  // Blocks: must not; a lane asks for each duplicate.
  virtual bool wants_duplicates() const { return false; }

  // Called for a duplicate: its operation is already completed, by an earlier delivery of this
  // message or by another message with the same key. `stored` is the result that `result` stored
  // then; use it to answer the producer again, for example. The call runs in a transaction under
  // the same seal. It runs at least once for each duplicate, not exactly once: a duplicate that is
  // delivered again is a duplicate again.
  // Neither a gate nor a route with key "position" calls it.
  // Throws: any exception. hapax then rolls back what this call wrote. After Reject it settles the
  //   duplicate at once; else it runs this again, at most `retry.max_attempts` times in all.
  // Blocks: as `handle`.
  virtual void on_duplicate(const Message& /*message*/, const StoredResult& /*stored*/,
                            Context& /*context*/) {}
};

class OutsideHandler;  // <hapax/outside.hpp>

// A named way to make instances of one handler, for HAPAX_PLUGIN and for hapax::Main. One of `make`
// and `make_outside` is set. hapax calls it once for each instance, one after the other on one
// thread. If it throws, the worker does not start (exit code 3).
struct HandlerFactory {
  std::string name;  // that routes use
  std::function<std::unique_ptr<Handler>()> make;
  std::string version = "unversioned";  // kept with dead letters
  // Instead of `make`: of a handler that calls to the outside.
  std::function<std::unique_ptr<OutsideHandler>()> make_outside = {};
};

// The factory of a handler that needs nothing for its constructor. For another handler write
// hapax::HandlerFactory{"name", [=] { return std::make_unique<SomeHandler>(…); }}.
template <class SomeHandler>
HandlerFactory handler(std::string name, std::string version = "unversioned") {
  constexpr bool kOutside = std::derived_from<SomeHandler, OutsideHandler>;
  static_assert(kOutside || std::derived_from<SomeHandler, Handler>,
                "hapax::handler<T>: T must derive publicly from hapax::Handler");
  static_assert(kOutside || !std::is_abstract_v<SomeHandler>,
                "hapax::handler<T>: T must override "
                "void handle(const hapax::Message&, hapax::Context&)");
  static_assert(!kOutside || !std::is_abstract_v<SomeHandler>,
                "hapax::handler<T>: T must override call and book of hapax::OutsideHandler");
  static_assert(std::is_abstract_v<SomeHandler> || std::default_initializable<SomeHandler>,
                "hapax::handler<T>: T needs a public constructor without parameters; for another "
                "write hapax::HandlerFactory{\"name\", [=] { return std::make_unique<T>(…); }}");
  HandlerFactory factory{.name = std::move(name), .make = {}, .version = std::move(version)};
  constexpr bool kDerived = kOutside || std::derived_from<SomeHandler, Handler>;
  // Else the compiler would add errors of its own to the sentence above. No abstract class can be
  // made, with or without parameters.
  constexpr bool kFits = kDerived && std::default_initializable<SomeHandler>;
  if constexpr (kFits && kOutside)
    factory.make_outside = [] { return std::make_unique<SomeHandler>(); };
  else if constexpr (kFits)
    factory.make = [] { return std::make_unique<SomeHandler>(); };
  return factory;
}

}  // namespace hapax

#ifndef HAPAX_PLUGIN  // <hapax/plugin.hpp> replaces it
#define HAPAX_PLUGIN(...) static_assert(false, "HAPAX_PLUGIN needs #include <hapax/plugin.hpp>");
#endif
