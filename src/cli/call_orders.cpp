#include "cli/call_orders.hpp"

#include <algorithm>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "key/key_text.hpp"

namespace hapax::app {

std::set<std::string> calling_scopes(const config::Config& config) {
  std::set<std::string> scopes;
  for (const config::Route& route : config.routes)
    if (route.outside) scopes.insert(route.key.scope);
  return scopes;
}

std::vector<std::string> call_scopes(const config::Config& config) {
  std::set<std::string> scopes;
  for (const config::Route& route : config.routes) scopes.insert(route.key.scope);
  return {scopes.begin(), scopes.end()};
}

std::string call_scope(const config::Config& config, const std::string& scope) {
  const std::vector<std::string> scopes = call_scopes(config);
  const std::set<std::string> calling = calling_scopes(config);
  if (!scope.empty() && std::ranges::find(scopes, scope) == scopes.end())
    throw Stop(kUsage, "no route has the scope \"" + scope + "\"");
  if (!scope.empty()) return scope;
  if (calling.size() == 1) return *calling.begin();
  if (scopes.size() == 1) return scopes.front();
  throw Stop(kUsage, "there are several scopes; name --scope");
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
  const std::string named = key.key;
  if (!store::read_keys(session, named, key.scope, key.tenant).empty()) return key;
  key.key = key::encode_key(named);
  if (!store::read_keys(session, key.key, key.scope, key.tenant).empty()) return key;
  store::Json elsewhere = store::read_keys(session, named);
  if (elsewhere.empty()) elsewhere = store::read_keys(session, key.key);
  throw Stop(kFailed, "no key \"" + named + "\"" +
                          (elsewhere.empty()
                               ? std::string(" is stored; look again with `hapax outside list`")
                               : " there; it is stored in " + key_places(elsewhere)));
}

store::CallDecision call_decision(const config::Config& config, const std::string& scope,
                                  store::CallDecision::What what) {
  using What = store::CallDecision::What;
  if (what == What::happened && !calling_scopes(config).contains(scope))
    throw Stop(kUsage,
               "no route of scope \"" + scope +
                   "\" calls to the outside (routes[].outside), so no worker would book the "
                   "answer. Start the release that called; or book it by hand, and give it up");
  store::CallDecision decision;
  decision.what = what;
  decision.group = group_of(config);
  for (const config::Route& route : config.routes)
    if (route.key.scope == scope)
      decision.retention =
          std::max(decision.retention, std::chrono::ceil<std::chrono::seconds>(route.retention));
  return decision;
}

std::string call_effect(const store::CallDecision& decision, const store::Json& found, bool calls) {
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
    case store::CallDecision::What::did_not_happen:
      return by + (calls ? "calls the other side again" : "runs the handler, which does not call");
    case store::CallDecision::What::give_up: break;
  }
  return "the operation is closed: it is neither called nor booked" + drops;
}

}  // namespace hapax::app
