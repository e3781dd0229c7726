#include "inspect/calls_state.hpp"

#include <vector>

#include "store/operator/inspect.hpp"

namespace hapax::app {

Json calls_state(const config::Config& config, store::Session& session) {
  std::vector<std::string> scopes;
  for (const config::Route& route : config.routes)
    if (route.outside) scopes.push_back(route.key.scope);
  return scopes.empty() ? Json() : store::count_open_calls(session, scopes);
}

std::string calls_line(const Json& calls) {
  const auto number = [&](const char* name) { return calls.at(name).dump(); };
  const bool waits = calls.at("unknown") > 0 || calls.at("abandoned") > 0;
  return "calls to the outside: " + number("started") + " started (" + number("abandoned") +
         " without a worker), " + number("answered") + " answered, " + number("unknown") +
         " unknown" + (waits ? "; `hapax outside list` names them" : "");
}

}  // namespace hapax::app
