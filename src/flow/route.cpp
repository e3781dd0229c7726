#include "flow/route.hpp"

#include <algorithm>

#include "flow/booking.hpp"
#include "flow/outcome.hpp"
#include "payload/reader.hpp"

namespace hapax::flow {

std::chrono::milliseconds RetryPolicy::wait(int failures, double jitter,
                                            std::optional<std::chrono::milliseconds> asked) const {
  constexpr std::chrono::milliseconds kLongest = kLongestRetryWait;
  if (asked) return std::clamp(*asked, std::chrono::milliseconds(0), kLongest);
  std::chrono::milliseconds full = first;
  for (int i = 1; i < failures && full < max; ++i) full *= 2;
  full = std::min(full, max);
  const auto drawn = std::chrono::milliseconds(
      static_cast<std::int64_t>(jitter * static_cast<double>(full.count()) / 2));
  return std::min(full / 2 + drawn, kLongest);
}

bool RetryPolicy::exhausted(int failures, std::chrono::milliseconds lasting) const {
  return failures >= max_attempts || (failures > 0 && max_elapsed && lasting >= *max_elapsed);
}

Route make_route(const config::Route& route, HandlerFactory handler) {
  return {.topic = route.topic,
          .key = route.key,
          .handler = std::move(handler),
          .retry = {.max_attempts = static_cast<int>(route.retry.max_attempts),
                    .max_crashes = static_cast<int>(route.retry.max_crashes),
                    .first = route.retry.first,
                    .max = route.retry.max,
                    .max_elapsed = route.retry.max_elapsed},
          .retention = std::chrono::ceil<std::chrono::seconds>(route.retention),
          .max_result_bytes = route.max_result_bytes,
          .batch = route.batch,
          .breaker = static_cast<int>(route.breaker),
          .outside = route.outside,
          .payload = payload::make_reader(route.payload)};
}

namespace {

// Throws: std::runtime_error that names the handler and what on_start threw.
template <class Made>
std::unique_ptr<Made> started(const Route& route, const nlohmann::json& options,
                              std::unique_ptr<Made> (*make)(const Route&)) {
  const auto failed = [&](const std::string& why) {
    return std::runtime_error("on_start of handler \"" + route.handler.name + "\", for topic \"" +
                              route.topic + "\", threw: " + why +
                              "; fix that, or routes[].options");
  };
  try {
    std::unique_ptr<Made> handler = make(route);
    handler->on_start({route.topic, options.dump()});
    return handler;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("what is no std::exception");
  }
}

}  // namespace

std::string mismatch(const config::Route& route, const HandlerFactory& handler) {
  const bool calls = handler.make_outside != nullptr;
  if (calls && route.topic.starts_with('/'))
    return "handler \"" + route.handler +
           "\" calls to the outside, and a gate runs no such handler. Write \"accept\" into the "
           "gate's route instead, and let a worker run the handler; see docs/gate.md.";
  if (calls && !route.outside)
    return "handler \"" + route.handler +
           "\" calls to the outside, and the route does not declare what the other side does with "
           "a call that comes again. Add \"outside\": {\"repeat\": \"idempotent\", "
           "\"remembers\": \"23h\"}, or \"queryable\", or \"never\"; see docs/outside.md.";
  if (!calls && route.outside)
    return "handler \"" + route.handler +
           "\" does not call to the outside (it is no hapax::OutsideHandler); remove \"outside\" "
           "from the route.";
  return {};
}

std::unique_ptr<Handler> start_handler(const Route& route, const nlohmann::json& options) {
  return started<Handler>(route, options, [](const Route& of) -> std::unique_ptr<Handler> {
    if (of.outside) return std::make_unique<Booking>(of.handler.make_outside());
    return of.handler.make();
  });
}

std::unique_ptr<OutsideHandler> start_outside_handler(const Route& route,
                                                      const nlohmann::json& options) {
  return started<OutsideHandler>(route, options,
                                 [](const Route& of) { return of.handler.make_outside(); });
}

}  // namespace hapax::flow
