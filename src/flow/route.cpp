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

}  // namespace hapax::flow
