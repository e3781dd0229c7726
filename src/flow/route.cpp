#include "flow/route.hpp"

namespace hapax::flow {

Route make_route(const config::Route& route, HandlerFactory handler) {
  return {route.topic,
          route.key,
          std::move(handler),
          {static_cast<int>(route.retry.max_attempts), static_cast<int>(route.retry.max_crashes),
           route.retry.first, route.retry.max, route.retry.max_elapsed},
          std::chrono::ceil<std::chrono::seconds>(route.retention),
          route.max_result_bytes,
          route.batch,
          static_cast<int>(route.breaker)};
}

std::unique_ptr<Handler> start_handler(const Route& route, const nlohmann::json& options) {
  const auto failed = [&](const std::string& why) {
    return std::runtime_error("on_start of handler \"" + route.handler.name + "\", for topic \"" +
                              route.topic + "\", threw: " + why +
                              "; fix that, or routes[].options");
  };
  try {
    std::unique_ptr<Handler> handler = route.handler.make();
    handler->on_start({route.topic, options});
    return handler;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("what is no std::exception");
  }
}

}  // namespace hapax::flow
