// The interface that users implement: one class that books one message.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hapax/context.hpp"
#include "hapax/message.hpp"

namespace hapax {

// What a handler gets once, before its first message.
struct Setup {
  std::string topic;
  nlohmann::json options;  // `options` of the route; {} if it has none
};

// Handles the messages of one route. Every lane has an instance of its own, so members need no
// lock. Keep state that must survive in PostgreSQL, because a worker can die at any time.
//
// A handler may run more than once for a message (after a crash, a retry, a lost partition). Only
// one run's effects commit. So every effect of a handler must go through `context`.
class Handler {
 public:
  virtual ~Handler() = default;

  // Called once for each instance (one for each lane, one for replays) before its first message.
  // One thread makes these calls, one after the other. `hapax check` also calls it, and then
  // nothing else.
  // Throws: any exception. The worker then does not start (exit code 3), so retry here what may
  //   succeed later.
  // Blocks: may block for less than 30 s; after that /livez fails.
  virtual void on_start(const Setup& /*setup*/) {}

  // Applies one message. Returning commits it.
  // Throws: Reject, if the message can never work: it becomes a dead letter. Retry, to try it again
  //   later. After any other exception the route's retry policy tries it again later.
  // Blocks: must take less than `worker.handler_timeout`, at which the process ends itself. Between
  //   two statements it must take less than `postgres.idle_in_transaction_timeout`.
  virtual void handle(const Message& message, Context& context) = 0;

  // Whether hapax shall call on_duplicate. Each duplicate then costs a transaction that writes.
  virtual bool wants_duplicates() const { return false; }

  // Called for a duplicate: its operation is already completed, by an earlier delivery of this
  // message or by another message with the same key. `stored` is the result that `result` stored
  // then; use it to answer the producer again, for example. The call runs in a transaction under
  // the same seal. It runs at least once for each duplicate, not exactly once: a duplicate that is
  // delivered again is a duplicate again.
  // Throws: any exception; hapax then undoes the call. It settles the duplicate after Reject at
  //   once, and else after `max_attempts` runs.
  virtual void on_duplicate(const Message& /*message*/,
                            const std::optional<nlohmann::json>& /*stored*/, Context& /*context*/) {
  }
};

// A named way to make instances of one handler.
struct HandlerFactory {
  std::string name;
  std::function<std::unique_ptr<Handler>()> make;
  std::string version = "unversioned";  // kept with dead letters
};

template <class SomeHandler>
HandlerFactory handler(std::string name, std::string version = "unversioned") {
  return {std::move(name), [] { return std::make_unique<SomeHandler>(); }, std::move(version)};
}

}  // namespace hapax
