// What a message has published, and which message has published a record: for `hapax explain`.
#pragma once

#include "cli/coordinates.hpp"
#include "cli/output.hpp"
#include "config/config.hpp"
#include "inspect/fate.hpp"
#include "inspect/origin.hpp"
#include "store/session.hpp"

namespace hapax::app {

// Reads the record at `place` and tells its message by the headers.
// Throws: Stop if there is no such record, or no outbox has sent it.
Origin read_origin(const config::Config& config, const Place& place);

Json origin_json(const Origin& origin);
// "payments/3/7 of group g (generation 1), idempotency-key …".
std::string name_of(const Origin& origin);

// {"origin", "topics", "unsent": […], "skipped_of_group"} of the message that took effect, this one
// or the one that it repeats. null if none has and nothing waits, or if the group publishes
// nothing. Throws: store::DatabaseError.
Json published_json(const config::Config& config, store::Session& session, const Standing& standing,
                    const Facts& facts);
void print_published(const Json& published);

}  // namespace hapax::app
