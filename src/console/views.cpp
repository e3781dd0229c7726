#include "console/views.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "cli/call_orders.hpp"
#include "cli/command.hpp"
#include "cli/coordinates.hpp"
#include "cli/store_access.hpp"
#include "console/bytes.hpp"
#include "console/mask.hpp"
#include "console/query.hpp"
#include "inspect/accounting.hpp"
#include "inspect/group_state.hpp"
#include "inspect/key_story.hpp"
#include "inspect/letters.hpp"
#include "inspect/message_story.hpp"
#include "inspect/outbox_state.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::console {
namespace {

using app::Json;
using app::Stop;
using observe::PageRequest;

const std::string& group_of(Ground& ground) { return app::group_of(ground.sessions.config()); }
const std::vector<std::string>& mask_of(Ground& ground) {
  return ground.sessions.config().console.mask;
}

Json choices_for(const Json& halt) {
  Json choices = Json::array();
  for (const store::Decision& decision :
       store::decisions_about(halt.at("reason").get<std::string>(), !halt.at("offset").is_null()))
    choices.push_back({{"name", decision.name},
                       {"effect", decision.effect},
                       {"destructive", decision.destructive},
                       {"database", store::is_about_database(decision)}});
  return choices;
}

Json state_of_group(Ground& ground, store::Session& session) {
  app::GroupInStore known = app::read_group_in_store(session, group_of(ground));
  const auto told = ground.kafka.told(app::to_ask(known));
  Json state = app::group_state(ground.sessions.config(), session, std::move(known),
                                told ? told->side : app::KafkaSide{});
  state["kafka_age_seconds"] = told ? Json(told->age.count()) : Json();
  for (Json& halt : state["halts"]) halt["choices"] = choices_for(halt);
  state["may"] = store::read_order_rights(session);
  return state;
}

Json shown_headers(const Json& headers) {
  Json shown = Json::array();
  for (const Json& header : headers) {
    if (shown.size() == kShownHeaders) break;
    shown.push_back({{"name", shown_bytes(app::bytes_of_hex(header.at(0)), kShownField)},
                     {"value", shown_bytes(app::bytes_of_hex(header.at(1)), kShownField)}});
  }
  return shown;
}

const std::string& need(const store::OptionalText& text, const char* name) {
  if (!text) throw Stop(app::kUsage, std::string(name) + " is missing");
  return *text;
}

app::Place place_of(const std::string& which) {
  const auto place = app::parse_place(which);
  if (!place || !place->offset)
    throw Stop(app::kUsage, "\"" + which + "\" is not TOPIC/PARTITION/OFFSET");
  return *place;
}

// Of a page newest first: the id that the next page is below; null if there is none.
Json id_behind(const Json& rows) { return rows.size() < kPageRows ? Json() : rows.back().at("id"); }

// One question to Kafka about messages at a time: several would leave no thread for the rest.
class Explaining {
 public:
  explicit Explaining(std::atomic<bool>& explains) : explains_(explains) {
    if (explains_.exchange(true))
      throw Stop(app::kUnreachable,
                 "the console asks Kafka about other messages now; ask again in a moment");
  }
  ~Explaining() { explains_ = false; }
  Explaining(const Explaining&) = delete;
  Explaining& operator=(const Explaining&) = delete;

 private:
  std::atomic<bool>& explains_;
};

Json explain_place(Ground& ground, const std::string& which) {
  const app::Place place = place_of(which);
  const Explaining explaining(ground.explains);
  Json told;
  ground.sessions.read([&](store::Session& session) {
    const app::Story story = app::tell_message(ground.sessions.config(), session, place);
    told = {{"which", which},
            {"story", story.published_by.empty() ? story.json : story.json.at("message")},
            {"published_by", story.published_by.empty() ? Json() : Json(story.published_by)},
            {"untold", story.untold.empty() ? Json() : Json(story.untold)}};
  });
  return told;
}

std::int32_t partition_of(const PageRequest& request) {
  const auto number = number_of(request, "partition");
  if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max())
    throw Stop(app::kUsage, "partition is no number of a partition");
  return static_cast<std::int32_t>(*number);
}

// The verdicts of the offsets from `first` on; neighbours with the same one are one run.
Json runs_of(const std::vector<app::Verdict>& verdicts, std::int64_t first,
             const app::Account& account) {
  Json runs = Json::array();
  for (std::int64_t offset = account.from; offset < account.to; ++offset) {
    const char* const verdict = app::name_of(verdicts[static_cast<std::size_t>(offset - first)]);
    if (runs.empty() || runs.back().at("verdict") != verdict)
      runs.push_back({{"from", offset}, {"to", offset}, {"verdict", verdict}});
    runs.back().at("to") = offset + 1;
  }
  return runs;
}

Json need_record(store::Session& session, const std::string& group, std::int64_t id) {
  Json record = store::read_outbox_record(session, group, id);
  if (record.is_null())
    throw Stop(app::kFailed, "group " + group + " has no unsent record " + std::to_string(id) +
                                 "; a record is removed once Kafka has it");
  return record;
}

}  // namespace

Json overview(Ground& ground, const PageRequest&) {
  const config::Config& config = ground.sessions.config();
  Json topics = Json::array();
  for (const config::Route& route : config.routes) topics.push_back(route.topic);
  Json shown = {{"group", group_of(ground)}, {"config", ground.config_path}, {"who", ground.who},
                {"topics", topics},          {"postgres_error", nullptr},    {"state", nullptr}};
  try {
    ground.sessions.read(
        [&](store::Session& session) { shown["state"] = state_of_group(ground, session); });
  } catch (const std::exception& error) {  // the page shows it beside what it knows
    shown["postgres_error"] = error.what();
  }
  return shown;
}

Json partition(Ground& ground, const PageRequest& request) {
  const std::string topic = need(text_of(request, "topic"), "topic");
  const std::int32_t which = partition_of(request);
  Json shown;
  ground.sessions.read([&](store::Session& session) {
    shown = {{"waiting",
              store::read_waiting(session, group_of(ground), kPageRows, std::pair(topic, which))},
             {"changes",
              store::read_position_changes(session, group_of(ground), topic, which, kPageRows)}};
  });
  return shown;
}

Json audit(Ground& ground, const PageRequest& request) {
  const std::int64_t from = number_of(request, "from").value_or(0);
  if (from < 0 || from > std::numeric_limits<std::int64_t>::max() - kAuditedOffsets)
    throw Stop(app::kUsage, "from is no offset");
  app::AuditWanted wanted{.topic = need(text_of(request, "topic"), "topic"),
                          .from = std::to_string(from),
                          .to = std::to_string(from + kAuditedOffsets),
                          .partition = partition_of(request),
                          .limit = kPageRows};
  const Explaining explaining(ground.explains);
  Json shown;
  ground.sessions.read([&](store::Session& session) {
    std::vector<app::Verdict> verdicts(kAuditedOffsets, app::Verdict::not_a_message);
    wanted.each = [&](std::int32_t, std::int64_t offset, app::Verdict verdict) {
      verdicts.at(static_cast<std::size_t>(offset - from)) = verdict;
    };
    app::Accounting accounting(ground.sessions.config(), session, wanted);
    app::asking_kafka([&] { accounting.run(); });
    const app::Account& account = accounting.accounts().front();
    shown = app::json_of(account);
    shown["runs"] = runs_of(verdicts, from, account);
    shown["unaccounted"] = Json::array();
    for (const app::Unaccounted& one : accounting.unaccounted())
      shown["unaccounted"].push_back({{"offset", one.offset}, {"why", one.story}});
  });
  return shown;
}

Json letters(Ground& ground, const PageRequest& request) {
  const auto state = text_of(request, "state").value_or("open");
  store::DeadLetterFilter filter = app::list_filter(filter_of(request), group_of(ground));
  filter.before = number_of(request, "before");
  filter.limit = kPageRows;
  if (state != "all") filter.state = state;
  Json shown;
  ground.sessions.read([&](store::Session& session) {
    const store::Listed listed = app::list_letters(session, filter);
    const Json next = app::next_page(listed, filter.limit);
    const bool full = static_cast<int>(listed.rows.size()) == filter.limit;
    shown = {{"rows", listed.rows},
             {"next", next},
             {"looked_at", next.is_null() || full ? Json() : Json(store::kMaxScan)}};
  });
  return shown;
}

Json letter(Ground& ground, const PageRequest& request) {
  const store::OptionalText which = text_of(request, "which");
  Json found;
  ground.sessions.read([&](store::Session& session) {
    found = app::read_letter(session, group_of(ground), need(which, "which"));
  });
  found["without_bytes"] = !app::has_bytes(found);
  found["message_key"] = shown_bytes(app::bytes_of_hex(found.at("message_key")), kShownField);
  found["payload"] = shown_payload(mask_of(ground), app::bytes_of_hex(found.at("payload")));
  found["header_count"] = found.at("headers").size();
  found["headers"] = shown_headers(found.at("headers"));
  found["other"] = found.at("other").is_null() ? Json() : Json(found.at("other").dump());
  for (Json& replay : found.at("replays"))
    replay["payload"] = shown_payload(mask_of(ground), app::bytes_of_hex(replay.at("payload")));
  return found;
}

Json replays(Ground& ground, const PageRequest& request) {
  Json shown;
  ground.sessions.read([&](store::Session& session) {
    const Json rows = store::list_replays(session, group_of(ground), number_of(request, "before"),
                                          text_of(request, "state"), kPageRows);
    shown = {{"counts", store::count_replays(session, group_of(ground))},
             {"next", id_behind(rows)},
             {"rows", rows}};
  });
  return shown;
}

Json operator_log(Ground& ground, const PageRequest& request) {
  Json shown;
  ground.sessions.read([&](store::Session& session) {
    const Json rights = store::read_order_rights(session);
    if (!rights.at("reads_log"))
      throw Stop(app::kFailed, "role " + rights.at("role").get<std::string>() +
                                   " may not read hapax.operator_log; start the console with --url "
                                   "and the operator's role");
    Json rows = store::list_operator_log(session, number_of(request, "before"),
                                         text_of(request, "text"), kPageRows);
    // They hold skipped records whole, and answers that an operator gave.
    if (!mask_of(ground).empty())
      for (Json& row : rows) row["facts"] = nullptr;
    shown = {{"next", id_behind(rows)}, {"rows", rows}};
  });
  return shown;
}

Json explanation(Ground& ground, const PageRequest& request) {
  if (const auto which = text_of(request, "which")) return explain_place(ground, *which);
  const app::KeyWanted wanted{need(text_of(request, "key"), "which or key"),
                              text_of(request, "scope"), text_of(request, "tenant")};
  Json story;
  ground.sessions.read([&](store::Session& session) {
    story = app::key_story(ground.sessions.config(), session, wanted);
  });
  for (Json& row : story.at("keys")) {
    mask_member(mask_of(ground), row, "result");
    if (!row.at("record").is_null())
      for (Json& of_record : row.at("record").at("keys"))
        mask_member(mask_of(ground), of_record, "result");
  }
  return story;
}

Json keys(Ground& ground, const PageRequest& request) {
  store::KeyFilter filter;
  filter.from = text_of(request, "from").value_or("");
  if (auto scope = text_of(request, "behind_scope"))
    filter.behind.emplace(std::move(*scope), text_of(request, "behind_tenant").value_or(""));
  filter.status = text_of(request, "status");
  filter.scope = text_of(request, "scope");
  filter.tenant = text_of(request, "tenant");
  if (const auto older = text_of(request, "older_than"))
    filter.older_than = app::duration_option("--older-than", *older);
  filter.limit = kPageRows;
  Json shown;
  ground.sessions.read([&](store::Session& session) { shown = app::key_page(session, filter); });
  return shown;
}

Json outbox(Ground& ground, const PageRequest& request) {
  const store::OptionalText topic = text_of(request, "topic");
  const std::int64_t above = number_of(request, "above").value_or(0);
  Json shown;
  ground.sessions.read([&](store::Session& session) {
    shown = topic ? app::outbox_records(session, group_of(ground), *topic, above, kPageRows)
                  : app::outbox_state(session, group_of(ground));
  });
  return shown;
}

Json outbox_record(Ground& ground, const PageRequest& request) {
  const std::int64_t id = number_of(request, "id").value_or(0);
  Json found;
  ground.sessions.read(
      [&](store::Session& session) { found = need_record(session, group_of(ground), id); });
  Json headers = Json::array();
  for (const auto& [name, value] : app::outbox_headers(found).value_or(store::OutboxHeaders{}))
    headers.push_back(
        {{"name", shown_bytes(name, kShownField)}, {"value", shown_bytes(value, kShownField)}});
  found["headers"] = std::move(headers);
  found["record_key"] = shown_bytes(app::bytes_of_hex(found.at("record_key")), kShownField);
  found["payload"] = shown_payload(mask_of(ground), app::bytes_of_hex(found.at("payload")));
  return found;
}

Json outside_calls(Ground& ground, const PageRequest& request) {
  const config::Config& config = ground.sessions.config();
  const std::vector<std::string> scopes = app::call_scopes(config);
  const auto status = text_of(request, "status").value_or("");
  Json calls = Json::array();
  ground.sessions.read([&](store::Session& session) {
    if (store::has_calls(session))
      calls = store::list_calls(session, scopes, app::call_filter(status), kPageRows);
  });
  if (calls.empty() && app::calling_scopes(config).empty())
    return {{"scopes", Json::array()}, {"calls", std::move(calls)}};
  for (Json& call : calls) {
    mask_member(mask_of(ground), call, "answer");
    if (call.at("steps").is_null()) continue;
    Json names = Json::array();  // an answer may hold what console.mask hides
    for (const auto& [name, answer] : call.at("steps").items()) names.push_back(name);
    call["steps"] = std::move(names);
  }
  return {{"scopes", scopes}, {"calls", std::move(calls)}};
}

observe::PageAnswer payload(Ground& ground, const PageRequest& request) {
  const store::OptionalText which = text_of(request, "letter");
  const auto record = number_of(request, "record");
  std::optional<std::string> bytes;
  bool kept = true;
  ground.sessions.read([&](store::Session& session) {
    const Json row =
        record ? need_record(session, group_of(ground), *record)
               : app::read_letter(session, group_of(ground), need(which, "letter or record"));
    bytes = app::bytes_of_hex(row.at("payload"));
    kept = record || app::has_bytes(row);
  });
  if (!kept)
    throw Stop(
        app::kFailed,
        "the message is not kept (more than PostgreSQL takes, or erased); read it from Kafka");
  if (!bytes) throw Stop(app::kFailed, "the payload is null (a tombstone): there are no bytes");
  if (masked(mask_of(ground), bytes).hides)
    throw Stop(app::kFailed,
               "console.mask of the configuration hides a part of this payload, so the console "
               "gives no file of it");
  return {200,
          "application/octet-stream",
          std::move(*bytes),
          {{"Content-Disposition", "attachment; filename=\"payload.bin\""}}};
}

}  // namespace hapax::console
