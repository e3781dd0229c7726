// Which calls to the outside an operator means, and what a decision about one does: for `hapax
// outside` and the console.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "store/operator/outside_orders.hpp"
#include "store/session.hpp"

namespace hapax::app {

// The scopes of routes that call to the outside.
std::set<std::string> calling_scopes(const config::Config& config);

// The scopes of all routes: an earlier release may have called in those that do not call now.
std::vector<std::string> call_scopes(const config::Config& config);

// `scope`. If it is empty, the only one that calls, or else the only one there is.
// Throws: Stop(kUsage) if it is none of the configuration.
std::string call_scope(const config::Config& config, const std::string& scope);

// "": calls that wait for a decision; else a status, or all.
store::CallFilter call_filter(const std::string& status);

// Throws: Stop(kUsage) if it is not JSON.
std::string json_answer(const std::string& answer);

// The key as it is stored, if it was named as the producer sends it.
// Throws: Stop(kFailed) if it is not stored there, naming the scopes and tenants that have it;
// store::DatabaseError.
store::KeyName call_key(store::Session& session, store::KeyName key);

// With what follows from the configuration: group and retention.
// Throws: Stop(kUsage) if it is `happened` and the scope's routes do not call, because no worker
// would book the answer.
store::CallDecision call_decision(const config::Config& config, const std::string& scope,
                                  store::CallDecision::What what);

// What follows from it, for people. `found`: the operation, as decide_call() returns it. `calls`:
// whether a route of its scope calls to the outside.
std::string call_effect(const store::CallDecision& decision, const store::Json& found, bool calls);

}  // namespace hapax::app
