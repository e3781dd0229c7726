#include "inspect/calls_state.hpp"

#include <algorithm>

#include "cli/call_orders.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {

Json calls_state(const config::Config& config, store::Session& session) {
  if (!store::has_calls(session)) return {};
  Json counts = store::count_open_calls(session, call_scopes(config));
  const bool any = std::ranges::any_of(counts, [](const Json& count) { return count > 0; });
  return any || !calling_scopes(config).empty() ? counts : Json();
}

std::string calls_line(const Json& calls) {
  const auto number = [&](const char* name) { return calls.at(name).dump(); };
  const bool waits = calls.at("unknown") > 0 || calls.at("abandoned") > 0;
  const std::string abandoned =
      calls.at("abandoned") > 0 ? " (of these " + number("abandoned") + " without a worker)" : "";
  return "calls to the outside: " + number("started") + " started, " + number("answered") +
         " answered" + abandoned + ", " + number("unknown") + " unknown" +
         (waits ? "; `hapax outside list` names them" : "");
}

}  // namespace hapax::app
