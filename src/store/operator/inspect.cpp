#include "store/operator/inspect.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <memory>

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/operator/json_rows.hpp"
#include "store/quote.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

Json read(Session& session, const Statement& statement, const std::vector<Parameter>& values = {}) {
  Transaction transaction(session);
  return json_of_rows<Json>(transaction.run(statement, values));
}

// With the search_path of handlers.
Json read_as_handlers(Session& session, const Statement& statement,
                      const std::vector<Parameter>& values = {}) {
  Transaction transaction(session);
  transaction.add("SET LOCAL search_path TO DEFAULT");
  return json_of_rows<Json>(transaction.run(statement, values));
}

// The id that all rows are below.
std::int64_t or_all(std::optional<std::int64_t> before) {
  return before.value_or(std::numeric_limits<std::int64_t>::max());
}

Json first(Json found) { return found.empty() ? Json() : found.front(); }

}  // namespace

Json read_server(Session& session) { return first(read(session, sql::kReadServer)); }

std::int64_t read_backend_pid(Session& session) {
  return first(read(session, sql::kReadBackendPid)).at("pid").get<std::int64_t>();
}

std::optional<int> dialled_port(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  if (!parsed) return std::nullopt;
  const char* const environment = std::getenv("PGPORT");
  std::string port = environment != nullptr ? environment : "5432";
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    if (std::string_view(option->keyword) == "service") return std::nullopt;
    if (std::string_view(option->keyword) == "port") port = option->val;
  }
  int number = 0;
  const char* const end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

Json read_tables(Session& session) { return read(session, sql::kReadTables); }

Json read_triggers(Session& session) { return read(session, sql::kReadTriggers); }

Json read_missing_rights(Session& session) { return read(session, sql::kReadMissingRights); }

Json read_missing_table_rights(Session& session, const Json& declared) {
  return read_as_handlers(session, sql::kReadMissingTableRights, {declared.dump()});
}

Json read_open_schemas(Session& session) {
  return read_as_handlers(session, sql::kReadOpenSchemas);
}

Json read_order_rights(Session& session) { return first(read(session, sql::kReadOrderRights)); }

Json read_unlogged_tables(Session& session) { return read(session, sql::kReadUnloggedTables); }

Json read_other_groups(Session& session, const std::string& group,
                       const std::vector<std::string>& topics) {
  return read(session, sql::kReadOtherGroups, {group, Json(topics).dump()});
}

Json read_partitions(Session& session, const std::string& group) {
  return read(session, sql::kReadPartitions, {group});
}

Json read_waiting(Session& session, const std::string& group, int limit,
                  const std::optional<std::pair<std::string, std::int32_t>>& partition) {
  if (!partition)
    return read(session, sql::kReadWaiting, {group, limit, Parameter(nullptr), Parameter(nullptr)});
  return read(session, sql::kReadWaiting, {group, limit, partition->first, partition->second});
}

Json read_position_changes(Session& session, const std::string& group, const std::string& topic,
                           std::optional<std::int32_t> partition, int limit) {
  return read(session, sql::kReadPositionChanges, {group, topic, Parameter(partition), limit});
}

Json count_dead_letters(Session& session, const std::string& group) {
  return read(session, sql::kCountOpenDeadLetters, {group, kMaxCount + 1});
}

bool has_calls(Session& session) {
  Transaction transaction(session);
  return !transaction.run("SELECT to_regclass('hapax.holders')")[0][0].is_null();
}

Json count_open_calls(Session& session, const std::vector<std::string>& scopes) {
  return first(read(session, sql::kCountOpenCalls,
                    {array_of(scopes, [](const std::string& scope) { return scope; }), kMaxCount}));
}

Json read_keys(Session& session, const std::string& key, const OptionalText& scope,
               const OptionalText& tenant) {
  return read(session, sql::kReadKeys, {key, Parameter(scope), Parameter(tenant)});
}

Listed list_keys(Session& session, const KeyFilter& filter) {
  const Json scan = first(read(session, sql::kScanKeys, {filter.from, kMaxScan}));
  Listed listed;
  listed.last = scan.at("last");
  listed.all = scan.at("scanned") < kMaxScan;
  if (listed.last.is_null()) return listed;
  const auto& behind = filter.behind;
  listed.rows =
      read(session, sql::kListKeys,
           {filter.from, listed.last.get<std::string>(), Parameter(filter.status),
            Parameter(filter.scope), Parameter(filter.tenant), seconds_or_null(filter.older_than),
            filter.limit, behind ? Parameter(behind->first) : Parameter(nullptr),
            behind ? Parameter(behind->second) : Parameter(nullptr)});
  return listed;
}

Listed list_dead_letters(Session& session, const DeadLetterFilter& filter) {
  Listed listed;
  const Parameter topic(filter.topic), handler(filter.handler), reason(filter.reason);
  const Parameter until = seconds_or_null(filter.until), error(filter.error), state(filter.state);
  const Parameter scope(filter.scope), tenant(filter.tenant);
  if (filter.key) {
    listed.rows =
        read(session, sql::kListDeadLettersOfKey,
             {filter.group, *filter.key, topic, handler, reason, seconds_or_null(filter.since),
              filter.limit, until, error, state, Parameter(filter.before), scope, tenant});
    return listed;
  }
  const std::int64_t before = or_all(filter.before);
  const Json scan = first(read(session, sql::kScanDeadLetters, {before, kMaxScan}));
  listed.last = scan.at("last");
  listed.all = scan.at("scanned") < kMaxScan;
  if (listed.last.is_null()) return listed;
  listed.rows =
      read(session, sql::kListDeadLetters,
           {filter.group, listed.last.get<std::int64_t>(), before, topic, handler, reason,
            seconds_or_null(filter.since), filter.limit, until, error, state, scope, tenant});
  return listed;
}

std::optional<std::int64_t> find_dead_letter(Session& session, const std::string& group,
                                             const std::string& topic, std::int32_t partition,
                                             std::int64_t offset) {
  const Json found = read(session, sql::kFindDeadLetter, {group, topic, partition, offset});
  if (found.empty()) return std::nullopt;
  return found[0].at("id").get<std::int64_t>();
}

Json read_dead_letter(Session& session, std::int64_t id) {
  return first(read(session, sql::kReadDeadLetter, {id}));
}

Json list_replays(Session& session, const std::string& group, std::optional<std::int64_t> before,
                  const OptionalText& state, int limit) {
  if (state == "open") return read(session, sql::kListOpenReplays, {group, or_all(before), limit});
  return read(session, sql::kListReplays, {group, or_all(before), Parameter(state), limit});
}

Json count_replays(Session& session, const std::string& group) {
  return read(session, sql::kCountReplays, {group, kMaxCount});
}

Json list_operator_log(Session& session, std::optional<std::int64_t> before,
                       const OptionalText& text, int limit) {
  return read(session, sql::kListOperatorLog, {or_all(before), Parameter(text), limit});
}

Json read_outbox_state(Session& session, const std::string& group) {
  return read(session, sql::kReadOutboxState, {group, kMaxCount + 1});
}

Json read_outbox_halts(Session& session, const std::string& group) {
  return read(session, sql::kReadOutboxHalts, {group});
}

Json list_outbox(Session& session, const std::string& group, const std::string& topic,
                 std::int64_t above, int limit) {
  return read(session, sql::kListOutbox, {group, topic, above, limit});
}

Json read_outbox_record(Session& session, const std::string& group, std::int64_t id) {
  return first(read(session, sql::kReadOutboxRecord, {group, id}));
}

Json read_outbox_counts(Session& session, const std::string& group) {
  return read(session, sql::kReadOutboxCounts, {group});
}

Json read_outbox_removals(Session& session, const std::string& group, int limit) {
  return read(session, sql::kReadOutboxRemovals, {group, limit});
}

Json read_unsent_of(Session& session, const Source& source, int limit) {
  return read(
      session, sql::kReadUnsentOf,
      {source.group, source.topic, source.generation, source.partition, source.offset, limit});
}

std::int64_t count_skipped(Session& session, const std::string& group) {
  Transaction transaction(session);
  return transaction.run(sql::kCountSkipped, {group})[0][0].as<std::int64_t>();
}

}  // namespace hapax::store
