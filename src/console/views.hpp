// What the console shows: each function answers one GET with what a command prints with --json.
// Bytes of messages come as shown_bytes() has them, payloads as shown_payload().
//
// Throws: app::Stop, store::DatabaseError. Thread safety: may be called from any thread.
#pragma once

#include "cli/output.hpp"
#include "console/ground.hpp"
#include "observe/page_server.hpp"

namespace hapax::console {

inline constexpr int kPageRows = 50;
inline constexpr std::int64_t kAuditedOffsets = 1000;
inline constexpr std::size_t kShownHeaders = 200;

// As `hapax status`; what this role may order; whether PostgreSQL and Kafka answer.
app::Json overview(Ground& ground, const observe::PageRequest& request);
// Of one partition, by `topic` and `partition`: its messages that wait for a retry, and how its
// position jumped, as `hapax offsets show`. The overview has the rest.
app::Json partition(Ground& ground, const observe::PageRequest& request);
// As `hapax audit` of one partition, by `topic` and `partition`, of at most kAuditedOffsets from
// `from` on; `runs`: the verdict of each offset. Blocks: as long as Kafka takes to give them.
app::Json audit(Ground& ground, const observe::PageRequest& request);
// As `hapax dead list` and `dead show`.
app::Json letters(Ground& ground, const observe::PageRequest& request);
app::Json letter(Ground& ground, const observe::PageRequest& request);
// Replays of dead letters, newest first, by `state`; how many there are in each state.
app::Json replays(Ground& ground, const observe::PageRequest& request);
// What operators of all groups did, newest first, by `text`. The worker's role may not read it.
app::Json operator_log(Ground& ground, const observe::PageRequest& request);
// As `hapax explain`, by `which` or by `key`.
app::Json explanation(Ground& ground, const observe::PageRequest& request);
// As `hapax keys list`, by `from`, `status`, `scope`, `tenant` and `older_than`. With
// `behind_scope` and `behind_tenant`: behind the row of `from` that they name.
app::Json keys(Ground& ground, const observe::PageRequest& request);
// As `hapax outbox list`, with `topic` its records; and `outbox show`.
app::Json outbox(Ground& ground, const observe::PageRequest& request);
app::Json outbox_record(Ground& ground, const observe::PageRequest& request);
// As `hapax outside list`.
app::Json outside_calls(Ground& ground, const observe::PageRequest& request);

// The payload of a `letter` or a `record` as a file, byte for byte. Refused if console.mask hides
// something of it.
observe::PageAnswer payload(Ground& ground, const observe::PageRequest& request);

}  // namespace hapax::console
