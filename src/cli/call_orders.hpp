// Which calls to the outside an operator means, and what a decision about one does: for `hapax
// outside` and the console.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "store/operator/outside_orders.hpp"
#include "store/session.hpp"

namespace hapax::app {

// Throws: Stop(kUsage) if no route calls to the outside.
std::vector<std::string> outside_scopes(const config::Config& config);

// `scope`, or the only one there is if it is empty. Throws: Stop(kUsage) if it is none of them.
std::string call_scope(const config::Config& config, const std::string& scope);

// "": calls that wait for a decision; else a status, or all.
store::CallFilter call_filter(const std::string& status);

// Throws: Stop(kUsage) if it is not JSON.
std::string json_answer(const std::string& answer);

// The key as it is stored, if it was named as the producer sends it. Throws: store::DatabaseError.
store::KeyName call_key(store::Session& session, store::KeyName key);

// With what follows from the configuration: group and retention.
store::CallDecision call_decision(const config::Config& config, const std::string& scope);

// What follows from it, for people. `found`: the operation, as decide_call() returns it.
std::string call_effect(const store::CallDecision& decision, const store::Json& found);

}  // namespace hapax::app
