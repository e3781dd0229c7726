// `hapax check`: calls to the outside that an earlier release left open.
#include "app/findings.hpp"
#include "cli/call_orders.hpp"
#include "cli/output.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/outside_orders.hpp"

namespace hapax::app {

void check_calls(const config::Config& config, store::Session& session, Findings& findings) {
  std::vector<std::string> scopes = call_scopes(config);
  std::erase_if(scopes, [calling = calling_scopes(config)](const std::string& scope) {
    return calling.contains(scope);
  });
  if (scopes.empty() || !store::has_calls(session)) return;
  const Json calls = store::list_calls(session, scopes, call_filter("all"), 1);
  if (calls.empty()) return findings.ok("open calls", "none in scopes that do not call");
  findings.warn("scope " + cell(calls[0].at("scope")),
                "an earlier release called to the outside in it, and that is not done; key " +
                    cell(calls[0].at("key")) + " is `" + cell(calls[0].at("status")) + "`",
                "start that release again until it is done; or `hapax outside decide`");
}

}  // namespace hapax::app
