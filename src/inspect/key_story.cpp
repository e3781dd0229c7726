#include "inspect/key_story.hpp"

#include "cli/store_access.hpp"
#include "config/units.hpp"
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

std::string story_of(const Json& row) {
  const std::string status = row.at("status");
  const std::string where = coordinates_cell(row) + " (group " + cell(row.at("group_id")) +
                            ", generation " + cell(row.at("generation")) + ")";
  const std::string when = time_cell(row.at("updated_at"));
  if (status == "completed" && !row.at("error").is_null())
    return where + " was ended at " + when + ", and nothing was booked: " + cell(row.at("error"));
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
    text += ", or it was more than " + config::format_duration(route.retention) + " ago (topic " +
            route.topic + ")";
  return text;
}

}  // namespace

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
  const std::string& group = group_of(config);
  Found found = find(session, group, wanted, wanted.key);
  const std::string encoded = key::encode_key(wanted.key);
  if (found.rows.empty() && found.letters.empty() && encoded != wanted.key)
    found = find(session, group, wanted, encoded);
  if (found.rows.empty() && found.letters.empty()) {
    Json elsewhere = store::read_keys(session, wanted.key);
    if (elsewhere.empty()) elsewhere = store::read_keys(session, encoded);
    throw Stop(kFailed, nothing(config, wanted, elsewhere));
  }
  return {{"key", found.key}, {"keys", found.rows}, {"dead_letters", found.letters}};
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
  for (const Json& row : story.at("keys")) print_row(row);
  for (const Json& letter : story.at("dead_letters")) print_letter(letter);
  return kDone;
}

}  // namespace hapax::app
