#include "cli/call_orders.hpp"

#include <algorithm>

#include "cli/command.hpp"
#include "cli/store_access.hpp"
#include "key/key_text.hpp"

namespace hapax::app {

std::vector<std::string> outside_scopes(const config::Config& config) {
  std::vector<std::string> scopes;
  for (const config::Route& route : config.routes)
    if (route.outside) scopes.push_back(route.key.scope);
  if (scopes.empty())
    throw Stop(kUsage, "no route of this configuration calls to the outside (routes[].outside)");
  return scopes;
}

std::string call_scope(const config::Config& config, const std::string& scope) {
  const std::vector<std::string> scopes = outside_scopes(config);
  if (scope.empty() && scopes.size() > 1)
    throw Stop(kUsage, "several routes call to the outside; name --scope");
  if (scope.empty()) return scopes.front();
  if (std::ranges::find(scopes, scope) == scopes.end())
    throw Stop(kUsage, "no route with \"outside\" has the scope \"" + scope + "\"");
  return scope;
}

store::CallFilter call_filter(const std::string& status) {
  if (status.empty()) return {.statuses = {"unknown"}, .abandoned = true};
  if (status == "all") return {.statuses = {"started", "answered", "unknown"}};
  return {.statuses = {status}};
}

std::string json_answer(const std::string& answer) {
  if (!nlohmann::json::accept(answer))
    throw Stop(kUsage, "--happened: the answer is not JSON: " + answer);
  return answer;
}

store::KeyName call_key(store::Session& session, store::KeyName key) {
  if (store::read_keys(session, key.key, key.scope, key.tenant).empty())
    key.key = key::encode_key(key.key);
  return key;
}

store::CallDecision call_decision(const config::Config& config, const std::string& scope) {
  store::CallDecision decision;
  decision.group = group_of(config);
  for (const config::Route& route : config.routes)
    if (route.key.scope == scope)
      decision.retention =
          std::max(decision.retention, std::chrono::ceil<std::chrono::seconds>(route.retention));
  return decision;
}

std::string call_effect(const store::CallDecision& decision, const store::Json& found) {
  const std::string by = found.at("dead_letter").is_null()
                             ? "once its message comes again, a worker "
                             : "a worker replays its dead letter within a second: it ";
  const store::Json& kept = found.at("answer");
  const bool books_it = decision.what == store::CallDecision::What::happened &&
                        (!decision.answer || kept == *decision.answer);
  const std::string drops =
      kept.is_null() || books_it
          ? ""
          : ". The other side has answered, and that answer is dropped: " + kept.get<std::string>();
  switch (decision.what) {
    case store::CallDecision::What::happened:
      return by + "books the answer, and does not call" + drops;
    case store::CallDecision::What::did_not_happen: return by + "calls the other side again";
    case store::CallDecision::What::give_up: break;
  }
  return "the operation is closed: it is neither called nor booked" + drops;
}

}  // namespace hapax::app
