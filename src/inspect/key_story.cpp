#include "inspect/key_story.hpp"

#include <algorithm>

#include "cli/store_access.hpp"
#include "config/gate.hpp"
#include "config/units.hpp"
#include "flow/publisher.hpp"
#include "flow/stored_response.hpp"
#include "inspect/evidence.hpp"
#include "key/key_text.hpp"

namespace hapax::app {
namespace {

constexpr int kMaxLetters = 50;

struct Found {
  std::string key;  // as stored
  Json rows, letters;
};

Found find(store::Session& session, const std::string& group, const KeyWanted& wanted,
           const std::string& key) {
  store::DeadLetterFilter filter;
  filter.group = group;
  filter.key = key;
  filter.scope = wanted.scope;
  filter.tenant = wanted.tenant;
  filter.limit = kMaxLetters;
  Found found{key, store::read_keys(session, key, wanted.scope, wanted.tenant),
              store::list_dead_letters(session, filter).rows};
  for (Json& letter : found.letters)
    letter["replays"] = store::read_replays_of(session, letter.at("id").get<std::int64_t>());
  return found;
}

bool is_request(const Json& row) { return row.at("generation") == 0; }

// What became of the record that a gate has made of an accepted request. null if the row is of
// anything else.
Json accepted_record(const config::Config& config, store::Session& session,
                     const std::string& group, const Json& row) {
  if (!is_request(row) || row.at("fingerprint").is_null()) return nullptr;
  const std::string key = flow::published_key(
      row.at("scope"), {row.at("key"), row.at("tenant"), {}},
      config::kAcceptedName + (" " + row.at("fingerprint").get<std::string>()), 0);
  const Found found = find(session, group, {}, key);
  const std::string path = row.at("topic");
  const auto answer = answer_to_request(row);
  if (answer && !flow::is_acceptance(*answer)) return nullptr;
  const bool accepts =
      answer || std::ranges::any_of(config.routes, [&](const config::Route& route) {
        return route.topic == path && route.handler == config::kAcceptHandler;
      });
  if (!accepts && found.rows.empty() && found.letters.empty()) return nullptr;
  return {{"idempotency_key", key}, {"keys", found.rows}, {"dead_letters", found.letters}};
}

std::string story_of(const Json& row) {
  const std::string status = row.at("status");
  const std::string where =
      is_request(row)
          ? "a request to " + cell(row.at("topic")) + " (gate " + cell(row.at("group_id")) + ")"
          : coordinates_cell(row) + " (group " + cell(row.at("group_id")) + ", generation " +
                cell(row.at("generation")) + ")";
  const std::string when = time_cell(row.at("updated_at"));
  if (row.contains("record") && !row.at("record").is_null() && status == "completed")
    return where + " was accepted at " + when;
  if (status == "completed" && !row.at("error").is_null())
    return where + " was ended at " + when + ", and nothing was booked: " + cell(row.at("error"));
  if (const auto answer = answer_to_request(row); answer && answer->status >= 400)
    return where + " was answered " + std::to_string(answer->status) + " at " + when +
           "; if its handler rejected it, nothing took effect";
  if (status == "completed") return where + " took effect at " + when;
  if (status == "failed")
    return where + " was given up on at " + when +
           "; nothing took effect, and the next other message with this key runs";
  if (status == "forgotten")
    return where + " was the last to hold it; an operator had it forgotten at " + when +
           ", and the next message with this key runs";
  if (status == "unknown")
    return where + " has called for it; what became of that is unknown since " + when +
           ", see hapax outside list";
  if (status == "answered")
    return where + " has called for it and was answered at " + when +
           "; the answer is to be booked";
  if (!row.at("called_by").is_null())
    return where + " calls for it, or waits to call again: worker " + cell(row.at("called_by")) +
           " has it under a lease since " + when;
  if (status == "started" && !row.at("error").is_null())
    return where + " has called for it in steps, and was given up on at " + when +
           " behind those that are done; a replay of its dead letter goes on behind them";
  return where + " has it " + status + " since " + when + ", and it never completed";
}

void print_row(const Json& row) {
  print_line("key " + cell(row.at("key")) + " in scope " + cell(row.at("scope")) +
             (row.at("tenant") == "" ? "" : ", tenant " + cell(row.at("tenant"))) + ": " +
             cell(row.at("status")));
  print_line(story_of(row));
  if (!row.at("error").is_null()) print_line("error        " + cell(row.at("error")));
  if (!row.at("result").is_null()) print_line("result       " + cell(row.at("result")));
  if (row.at("duplicates") != 0)
    print_line("duplicates   " + cell(row.at("duplicates")) + " seen by the handler");
  print_line("expires      " + time_cell(row.at("expires_at")));
}

void print_letter(const Json& letter) {
  print_line("dead letter " + cell(letter.at("id")) + " of " + coordinates_cell(letter) + " at " +
             time_cell(letter.at("created_at")) + ": " + cell(letter.at("reason")) + " (" +
             cut(cell(letter.at("error")), 120) + ")");
  for (const Json& replay : letter.at("replays")) print_line("  replay " + replay_line(replay));
}

// What came of an accepted request, behind its row.
void print_record(const Json& record) {
  print_line("its record   idempotency-key " + cell(record.at("idempotency_key")));
  for (const Json& row : record.at("keys")) print_row(row);
  for (const Json& letter : record.at("dead_letters")) print_letter(letter);
  if (record.at("keys").empty() && record.at("dead_letters").empty())
    print_line("             no worker has settled it: it waits in the outbox or in Kafka");
}

// If nothing is stored: what that can mean, and under which other key it is stored.
std::string nothing(const config::Config& config, const KeyWanted& wanted, const Json& elsewhere) {
  std::string text = "nothing is stored about key \"" + wanted.key + "\"";
  if (!elsewhere.empty()) {
    text += " there; it is stored in";
    for (const Json& row : elsewhere)
      text += " scope \"" + cell(row.at("scope")) + "\" tenant \"" + cell(row.at("tenant")) + "\"";
    return text;
  }
  text += ": no message with it has been settled";
  for (const config::Route& route : config.routes)
    if (route.handler != config::kOperationsHandler)
      text += ", or it was more than " + config::format_duration(route.retention) + " ago (" +
              (route.topic.starts_with('/') ? "route " : "topic ") + route.topic + ")";
  return text;
}

// A message that failed and waits has no key in the database yet.
std::string waiting(store::Session& session, const std::string& group) {
  if (group.empty() || store::read_waiting(session, group, 1).empty()) return {};
  return ". Messages of group " + group +
         " failed and wait for a retry. This may be one of them: nothing is stored under their "
         "keys yet. `hapax status` lists them, and `hapax explain TOPIC/PARTITION/OFFSET` tells "
         "the key of each";
}

}  // namespace

std::optional<Response> answer_to_request(const Json& row) {
  if (!is_request(row) || row.at("status") != "completed" || row.at("result").is_null())
    return std::nullopt;
  return flow::response_of(row.at("result"));
}

std::string replay_line(const Json& replay) {
  std::string text = cell(replay.at("id")) + " wanted by " + cell(replay.at("who")) + " at " +
                     time_cell(replay.at("wanted_at")) + ": " + cell(replay.at("why"));
  if (replay.at("edited") == true) text += "; with an edited payload";
  if (replay.at("ended_at").is_null()) return text + "; not ended yet";
  text += "; " + cell(replay.at("outcome")) + " at " + time_cell(replay.at("ended_at"));
  if (!replay.at("detail").is_null()) text += " (" + cell(replay.at("detail")) + ")";
  return text;
}

Json key_story(const config::Config& config, store::Session& session, const KeyWanted& wanted) {
  // A gate without Kafka has no group, and no dead letters.
  const bool has_group = config.kafka.properties.contains("group.id");
  const std::string group = has_group ? group_of(config) : "";
  Found found = find(session, group, wanted, wanted.key);
  const std::string encoded = key::encode_key(wanted.key);
  if (found.rows.empty() && found.letters.empty() && encoded != wanted.key)
    found = find(session, group, wanted, encoded);
  if (found.rows.empty() && found.letters.empty()) {
    Json elsewhere = store::read_keys(session, wanted.key);
    if (elsewhere.empty()) elsewhere = store::read_keys(session, encoded);
    throw Stop(kFailed, nothing(config, wanted, elsewhere) + waiting(session, group));
  }
  for (Json& row : found.rows) {
    row["record"] = accepted_record(config, session, group, row);
    row["story"] = story_of(row);
  }
  return {{"key", found.key}, {"keys", found.rows}, {"dead_letters", found.letters}};
}

Json key_page(store::Session& session, const store::KeyFilter& filter) {
  const store::Listed listed = store::list_keys(session, filter);
  Json next = listed.all ? Json() : listed.last, after;
  if (static_cast<int>(listed.rows.size()) == filter.limit) {
    const Json& last = listed.rows.back();
    next = last.at("key");
    after = Json::array({last.at("key"), last.at("scope"), last.at("tenant")});
  }
  return {{"keys", listed.rows}, {"next", next}, {"after", after}};
}

ExitCode explain_key(const config::Config& config, const KeyWanted& wanted, bool json) {
  store::Session session = open_store(config);
  const Json story = key_story(config, session, wanted);
  if (json) {
    print_json(story);
    return kDone;
  }
  if (story.at("keys").empty())
    print_line("no key row \"" + cell(story.at("key")) +
               "\": nothing took effect under it, or retention has "
               "removed it");
  for (const Json& row : story.at("keys")) {
    print_row(row);
    if (!row.at("record").is_null()) print_record(row.at("record"));
  }
  for (const Json& letter : story.at("dead_letters")) print_letter(letter);
  return kDone;
}

}  // namespace hapax::app
