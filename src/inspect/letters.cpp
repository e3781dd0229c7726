#include "inspect/letters.hpp"

#include <algorithm>
#include <charconv>

#include "cli/command.hpp"
#include "cli/coordinates.hpp"
#include "cli/store_access.hpp"
#include "key/key_text.hpp"

namespace hapax::app {

bool is_empty(const LetterFilter& filter) {
  return filter.which.empty() && !filter.topic && !filter.handler && !filter.reason &&
         !filter.error && !filter.key && !filter.scope && !filter.tenant && filter.since.empty() &&
         filter.until.empty();
}

store::DeadLetterFilter list_filter(const LetterFilter& filter, const std::string& group) {
  store::DeadLetterFilter wanted;
  wanted.group = group;
  wanted.topic = filter.topic;
  wanted.handler = filter.handler;
  wanted.reason = filter.reason;
  wanted.error = filter.error;
  wanted.key = filter.key;
  wanted.scope = filter.scope;
  wanted.tenant = filter.tenant;
  if (!filter.since.empty()) wanted.since = duration_option("--since", filter.since);
  if (!filter.until.empty()) wanted.until = duration_option("--until", filter.until);
  return wanted;
}

namespace {

// Keeps the operation in `letters`, so that the order leaves out a letter of another one that comes
// meanwhile.
void expect_one_operation(store::Session& session, store::OpenLetters& letters) {
  Json operations = Json::array();
  store::OpenLetters rest = letters;
  for (Json page; !(page = store::page_of(session, rest)).empty();) {
    rest.above = page.back().at("id").get<std::int64_t>();
    for (const Json& row : page) {
      Json operation = {{"scope", row.at("scope")}, {"tenant", row.at("tenant")}};
      if (std::ranges::find(operations, operation) == operations.end())
        operations.push_back(std::move(operation));
    }
  }
  if (operations.size() > 1)
    throw Stop(kUsage, "open dead letters of this key are in " + key_places(operations) +
                           ": name scope and tenant (--scope, --tenant)");
  if (operations.empty()) return;
  letters.scope = operations[0].at("scope").get<std::string>();
  if (const Json& tenant = operations[0].at("tenant"); tenant.is_string())
    letters.tenant = tenant.get<std::string>();
}

}  // namespace

store::Listed list_letters(store::Session& session, store::DeadLetterFilter& filter) {
  store::Listed listed = store::list_dead_letters(session, filter);
  if (!filter.key || !listed.rows.empty()) return listed;
  filter.key = key::encode_key(*filter.key);
  return store::list_dead_letters(session, filter);
}

store::OpenLetters letters_to_order(store::Session& session, const store::DeadLetterFilter& filter,
                                    store::LetterIds ids, bool skipped) {
  store::DeadLetterFilter listed = filter;
  if (filter.key) {
    listed.state = "open";
    listed.limit = 1;
    list_letters(session, listed);  // chooses the key: as it is stored, or encoded
  }
  store::OpenLetters letters{.group = filter.group,
                             .ids = std::move(ids),
                             .topic = filter.topic,
                             .handler = filter.handler,
                             .reason = filter.reason,
                             .error = filter.error,
                             .key = listed.key,
                             .scope = filter.scope,
                             .tenant = filter.tenant,
                             .since = filter.since,
                             .until = filter.until,
                             .up_to = {},
                             .skipped = skipped};
  if (letters.key && letters.ids.empty()) expect_one_operation(session, letters);
  return letters;
}

Json next_page(const store::Listed& listed, int limit) {
  const bool full = static_cast<int>(listed.rows.size()) == limit;
  return full ? listed.rows.back().at("id") : listed.all ? Json() : listed.last;
}

namespace {

// Names the newest letter, for an operator who asked for one that does not exist.
std::string newest(store::Session& session, const std::string& group) {
  store::DeadLetterFilter filter;
  filter.group = group;
  filter.limit = 1;
  const Json rows = store::list_dead_letters(session, filter).rows;
  if (rows.empty()) return "; group " + group + " has none";
  return "; the newest of group " + group + " is " + cell(rows[0].at("id")) + " (" +
         coordinates_cell(rows[0]) + ")";
}

}  // namespace

Json read_letter(store::Session& session, const std::string& group, const std::string& which) {
  std::optional<std::int64_t> id;
  if (const auto place = parse_place(which); place && place->offset) {
    id = store::find_dead_letter(session, group, place->topic, *place->partition, *place->offset);
  } else {
    std::int64_t number = 0;
    const char* const end = which.data() + which.size();
    const auto [rest, error] = std::from_chars(which.data(), end, number);
    if (error != std::errc() || rest != end)
      throw Stop(kUsage, "\"" + which + "\" is neither an id nor TOPIC/PARTITION/OFFSET");
    id = number;
  }
  Json found = id ? store::read_dead_letter(session, *id) : Json();
  if (found.is_null())
    throw Stop(kFailed, "there is no dead letter " + which + newest(session, group));
  return found;
}

bool has_bytes(const Json& letter) {
  const Json& other = letter.at("other");
  if (other.is_object() && other.value("bytes_kept", Json()) == Json(false)) return false;
  if (!letter.at("payload").is_null() || !letter.at("message_key").is_null() ||
      !letter.at("headers").empty())
    return true;
  return letter.at("error").get<std::string>().find(" (the message itself could not be kept: ") ==
         std::string::npos;
}

Json letter_json(Json letter) {
  for (const char* const name : {"message_key", "payload"})
    letter[name] = bytes_json(bytes_of_hex(letter.at(name)));
  Json headers = Json::array();
  for (const Json& header : letter.at("headers"))
    headers.push_back({{"name", bytes_json(bytes_of_hex(header.at(0)))},
                       {"value", bytes_json(bytes_of_hex(header.at(1)))}});
  letter["headers"] = std::move(headers);
  for (Json& replay : letter.at("replays"))
    replay["payload"] = bytes_json(bytes_of_hex(replay.at("payload")));
  return letter;
}

}  // namespace hapax::app
