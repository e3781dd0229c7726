// What people ask of hapax's tables, for the operator's commands. Reads only, each one short
// transaction, each bounded; the rows as JSON objects by column name, times in ISO 8601.
//
// Throws: DatabaseError.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/message/source.hpp"
#include "store/session.hpp"

namespace hapax::store {

using Json = nlohmann::ordered_json;
using OptionalText = std::optional<std::string>;

// The server and this role: sql/operator/read_server.sql.
Json read_server(Session& session);
std::int64_t read_backend_pid(Session& session);
// The port that the url dials; nothing if it names none that can be told (several, a service).
std::optional<int> dialled_port(const std::string& url);

Json read_tables(Session& session);
// Of hapax's tables: sql/operator/read_triggers.sql.
Json read_triggers(Session& session);
Json read_missing_rights(Session& session);
// `declared`: [{"table": "payments", "privilege": "INSERT"}]. A table that is not there comes with
// null.
Json read_missing_table_rights(Session& session, const Json& declared);
// Schemas of handlers' search_path in which any role may create functions.
Json read_open_schemas(Session& session);
// What this role may order and read: sql/operator/read_order_rights.sql.
Json read_order_rights(Session& session);
Json read_unlogged_tables(Session& session);  // outside of hapax's schema
Json read_other_groups(Session& session, const std::string& group,
                       const std::vector<std::string>& topics);

Json read_partitions(Session& session, const std::string& group);
// Messages that failed and are not settled; nothing: of all partitions.
Json read_waiting(Session& session, const std::string& group, int limit,
                  const std::optional<std::pair<std::string, std::int32_t>>& partition = {});
// Those that are not ended. By reason.
Json count_dead_letters(Session& session, const std::string& group);
// False on a schema without calls to the outside.
bool has_calls(Session& session);
// Calls to the outside of these scopes that are not done: sql/operator/count_open_calls.sql.
// Precondition: has_calls().
Json count_open_calls(Session& session, const std::vector<std::string>& scopes);
inline constexpr int kMaxCount = 10'000;  // at most so many are counted, and one more

// The newest jumps of a topic's positions; nothing: of all partitions.
Json read_position_changes(Session& session, const std::string& group, const std::string& topic,
                           std::optional<std::int32_t> partition, int limit);

Json read_keys(Session& session, const std::string& key, const OptionalText& scope = {},
               const OptionalText& tenant = {});

// A list never looks at more rows than this, even if its filters miss all.
inline constexpr int kMaxScan = 100'000;

struct Listed {
  Json rows = Json::array();
  bool all = true;  // false: the look ended at kMaxScan rows
  Json last;        // the last row: a key, an id
};

struct KeyFilter {
  std::string from;  // first key to look at
  // Scope and tenant of the row with `from` that they come behind; nothing: all rows with it.
  std::optional<std::pair<std::string, std::string>> behind = std::nullopt;
  OptionalText status, scope, tenant;
  std::optional<std::chrono::seconds> older_than;  // since the last change
  int limit = 50;
};
Listed list_keys(Session& session, const KeyFilter& filter);

struct DeadLetterFilter {
  std::string group;
  std::optional<std::int64_t> before;  // ids below this one
  OptionalText topic, handler, reason;
  OptionalText key;  // as stored; then kMaxScan does not matter
  OptionalText scope, tenant;
  std::optional<std::chrono::seconds> since;
  int limit = 50;
  std::optional<std::chrono::seconds> until;  // at least so old
  OptionalText error;                         // a part of it
  OptionalText state;                         // open, replayed, discarded
};
Listed list_dead_letters(Session& session, const DeadLetterFilter& filter);

std::optional<std::int64_t> find_dead_letter(Session& session, const std::string& group,
                                             const std::string& topic, std::int32_t partition,
                                             std::int64_t offset);
// Bytes as hex. null: there is none.
Json read_dead_letter(Session& session, std::int64_t id);

// Replays with ids below `before`, newest first. `state`: open, or an outcome; nothing: all.
Json list_replays(Session& session, const std::string& group, std::optional<std::int64_t> before,
                  const OptionalText& state, int limit);
// The states of the newest kMaxCount replays.
Json count_replays(Session& session, const std::string& group);
// What operators of all groups did, with ids below `before`, newest first. `text`: a part of who,
// action, target or why.
Json list_operator_log(Session& session, std::optional<std::int64_t> before,
                       const OptionalText& text, int limit);

// What waits in the outbox, by topic; at most kMaxCount records of each are counted, and one more.
Json read_outbox_state(Session& session, const std::string& group);
// What the relay has stopped until an operator decides. Record keys as hex.
Json read_outbox_halts(Session& session, const std::string& group);
// Unsent records of a topic, with ids above `above`, in their order. Record keys as hex.
Json list_outbox(Session& session, const std::string& group, const std::string& topic,
                 std::int64_t above, int limit);
// An unsent record, bytes as hex. null: there is none.
Json read_outbox_record(Session& session, const std::string& group, std::int64_t id);
// What became of a group's published records since they are counted, by topic:
// sql/operator/read_outbox_counts.sql. Blocks: as long as counting all unsent records takes.
Json read_outbox_counts(Session& session, const std::string& group);
// Records that left the outbox in no way of hapax's, the newest first.
Json read_outbox_removals(Session& session, const std::string& group, int limit);
// The unsent records that the message at `source` has published.
Json read_unsent_of(Session& session, const Source& source, int limit);
// The records of the group that operators have skipped.
std::int64_t count_skipped(Session& session, const std::string& group);

}  // namespace hapax::store
