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

// What a handler is told once, before its first message.
struct Setup {
  std::string topic;
  nlohmann::json options;  // `options` of the route, {} where there are none
};

// Handles the messages of one route. Every lane has an instance of its own, so members need no
// lock; state that must survive belongs into PostgreSQL, because a worker can die at any time.
//
// A handler may run more than once for a message (after a crash, a retry, a lost partition); only
// one run's effects commit. So everything it does to the world must go through `context`.
class Handler {
 public:
  virtual ~Handler() = default;

  // Once an instance, before the first message: of all lanes and of replays, one after the other on
  // one thread. `hapax check` calls it, too, and then nothing else. Throws: any exception; the
  // worker then does not start (exit code 3), so what may pass is retried in here. Blocks: one call
  // shorter than 30 s, or /livez fails.
  virtual void on_start(const Setup& /*setup*/) {}

  // Applies one message. Returning commits it.
  // Throws: Reject (never works: dead letter), Retry (later), any other exception (later, by the
  //   route's retry policy).
  // Blocks: shorter than `worker.handler_timeout`, at which the process ends, and than
  //   `postgres.idle_in_transaction_timeout` between two statements.
  virtual void handle(const Message& message, Context& context) = 0;

  // Whether on_duplicate is wanted. Each duplicate then costs a transaction that writes.
  virtual bool wants_duplicates() const { return false; }

  // A message whose operation is completed already, by this message delivered before or by another
  // one of the same key; `stored` is what `result` stored then. For answering the producer again,
  // say. Runs in a transaction under the same seal, and at least once for each duplicate, not
  // exactly once: a duplicate delivered again is a duplicate again.
  // Throws: as `handle`; after `max_attempts` the duplicate is settled without it.
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
