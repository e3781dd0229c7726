// What it takes to end a halt, for `hapax resume` and the console: the order, its rehearsal, and
// what it changed in words.
#pragma once

#include <string>
#include <vector>

#include "cli/coordinates.hpp"
#include "config/config.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/resume.hpp"
#include "store/session.hpp"

namespace hapax::app {

// An order about `place`, without decision, who and why.
store::Resumption resumption_of(const config::Config& config, const Place& place);

// Whose rights the decision needs, for the sentence if PostgreSQL refuses it.
const char* rights_for(const store::Decision& decision);

// The decision as it is for these halts: about the first one of which it asks, if there is one.
store::Decision about(const store::Decision& decision, const std::vector<store::Halt>& halts);

// Everything as it would be done, rolled back; so what does not fit is refused before an operator
// is asked. Throws: Stop(kFailed) if `place` is not halted; store::Refused, store::DatabaseError.
store::Resumed rehearse(store::Session& session, store::Resumption wanted,
                        const std::string& place);

// A line for each halt, and for each row before and after.
std::vector<std::string> resumed_lines(const store::Resumed& resumed);

}  // namespace hapax::app
