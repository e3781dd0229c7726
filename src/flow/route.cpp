#include "flow/route.hpp"

#include <algorithm>

#include "flow/outcome.hpp"

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
          .breaker = static_cast<int>(route.breaker)};
}

std::unique_ptr<Handler> start_handler(const Route& route, const nlohmann::json& options) {
  const auto failed = [&](const std::string& why) {
    return std::runtime_error("on_start of handler \"" + route.handler.name + "\", for topic \"" +
                              route.topic + "\", threw: " + why +
                              "; fix that, or routes[].options");
  };
  try {
    std::unique_ptr<Handler> handler = route.handler.make();
    handler->on_start({route.topic, options.dump()});
    return handler;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("what is no std::exception");
  }
}

}  // namespace hapax::flow
