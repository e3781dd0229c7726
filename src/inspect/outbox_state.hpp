// The outbox as `hapax outbox`, `status` and `check` tell of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output.hpp"
#include "store/operator/outbox_orders.hpp"
#include "store/session.hpp"
#include "store/worker/outbox_headers.hpp"

namespace hapax::app {

// {"unsent", "oldest_seconds", "topics": […], "halts": […]} of the group. Topics are those with
// unsent records; each halt has its "decisions". A record key is as bytes_json() has it.
// Throws: store::DatabaseError.
Json outbox_state(store::Session& session, const std::string& group);

// {"records": […], "next": id or null} of a topic's unsent records with ids above `above`. Record
// keys are as bytes_json() has them. Throws: store::DatabaseError.
Json outbox_records(store::Session& session, const std::string& group, const std::string& topic,
                    std::int64_t above, int limit);

// The headers of a row of store::read_outbox_record(). Nothing if it was edited by hand.
std::optional<store::OutboxHeaders> outbox_headers(const Json& record);

// Such a row as `hapax outbox show --json` prints it.
Json outbox_record_json(Json record);

// What was decided, with the records whole: {"halts", "records",
// "forgotten_cluster", "dry_run"}.
Json outbox_decided_json(const store::OutboxDecided& decided, bool dry_run);

// The sentence if there is no halt of `which`. It names the halts that there are.
std::string not_halted(store::Session& session, const std::string& group, const std::string& which);

// "record 17 of receipts (key "k0")", or "topic receipts".
std::string halted_thing(const Json& halt);

// Each halt with the commands that end it. `options`: the part of them behind `hapax outbox retry`.
void print_outbox_halts(const Json& halts, const std::string& options);

// "outbox: 12 unsent, the oldest for 35s"; counts stop above 10,000 a topic.
std::string outbox_line(const Json& state);

}  // namespace hapax::app
