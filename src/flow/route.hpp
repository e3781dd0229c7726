// What the flow knows of a route: one topic, one handler, and the rules between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "flow/publisher.hpp"
#include "hapax/handler.hpp"
#include "key/key_spec.hpp"
#include "store/message/claim.hpp"

namespace hapax::payload {
class Reader;
}

namespace hapax::flow {

// Exponential: first, twice that, … at most `max`. Half of it is drawn at random, so that messages
// that failed together do not run again together.
struct RetryPolicy {
  int max_attempts = 5;
  int max_crashes = 3;  // runs in cautious mode that the process does not survive
  std::chrono::milliseconds first{200};
  std::chrono::milliseconds max{30000};
  std::optional<std::chrono::milliseconds> max_elapsed = std::nullopt;  // since the first failure

  // The wait after the `failures`-th failed run; `jitter` is in [0, 1). `asked`: by its Retry.
  std::chrono::milliseconds wait(int failures, double jitter,
                                 std::optional<std::chrono::milliseconds> asked = {}) const;

  // Whether a message that failed so often, the last time `lasting` after the first, is given up.
  bool exhausted(int failures, std::chrono::milliseconds lasting) const;
};

// Immutable once the worker runs.
struct Route {
  std::string topic;
  key::KeySpec key;
  HandlerFactory handler;
  RetryPolicy retry;
  std::chrono::seconds retention{0};
  std::size_t max_result_bytes = 0;
  std::size_t batch = 1;  // messages a transaction, at most
  int breaker = 0;        // dead letters in a row for one cause that halt the route; 0: never
  store::Durability durability = store::Durability::synchronous;  // the worker's: of its effects
  std::shared_ptr<const Publishing> publishing = {};  // nothing: its handler may not publish
  std::optional<config::Outside> outside = {};        // its handler calls to the outside
  // Decodes its payloads and checks them; null: neither.
  std::shared_ptr<const payload::Reader> payload = {};
};

// An instance of the route's handler, with on_start called.
// Throws: std::runtime_error that names the handler and what it threw.
std::unique_ptr<Handler> start_handler(const Route& route, const nlohmann::json& options);

// The same for a route that calls to the outside, for one thread that calls.
std::unique_ptr<OutsideHandler> start_outside_handler(const Route& route,
                                                      const nlohmann::json& options);

// Why the route cannot have this handler; empty if it can. A handler that calls to the outside
// needs a route with `outside`, because hapax repeats a call only as that allows. So it cannot have
// a path of a gate. Other handlers need one without.
std::string mismatch(const config::Route& route, const HandlerFactory& handler);

// Makes the route of its configuration and its handler.
// Throws: std::runtime_error if routes[].payload.schema is no schema that can be checked; how to
//   fix it.
Route make_route(const config::Route& route, HandlerFactory handler);

}  // namespace hapax::flow
