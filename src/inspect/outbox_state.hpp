// The outbox as `hapax outbox list`, `status` and `check` tell of it.
#pragma once

#include <string>

#include "cli/output.hpp"
#include "store/session.hpp"

namespace hapax::app {

// {"unsent", "oldest_seconds", "topics": […], "halts": […]} of the group. Topics are those with
// unsent records; each halt has its "decisions". A record key is as bytes_json() has it.
// Throws: store::DatabaseError.
Json outbox_state(store::Session& session, const std::string& group);

// "record 17 of receipts (key "k0")", or "topic receipts".
std::string halted_thing(const Json& halt);

// Each halt with the commands that end it. `options`: the part of them behind `hapax outbox retry`.
void print_outbox_halts(const Json& halts, const std::string& options);

// "outbox: 12 unsent, the oldest for 35s"; counts stop above 10,000 a topic.
std::string outbox_line(const Json& state);

}  // namespace hapax::app
