// hapax dead list|show: messages that were given up on.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>

#include "app/command.hpp"
#include "app/coordinates.hpp"
#include "app/output.hpp"
#include "app/store_access.hpp"
#include "key/key_text.hpp"
#include "observe/escape.hpp"
#include "store/inspect.hpp"

namespace hapax::app {
namespace {

struct DeadOptions {
  ConfigOption config;
  std::string which;
  store::OptionalText topic, handler, reason, key;
  std::string since;
  std::optional<std::int64_t> before;
  int limit = 50;
  bool json = false;
  bool payload = false;
};

store::Listed find(store::Session& session, store::DeadLetterFilter& filter) {
  store::Listed listed = store::list_dead_letters(session, filter);
  if (!filter.key || !listed.rows.empty()) return listed;
  filter.key = key::encode_key(*filter.key);
  return store::list_dead_letters(session, filter);
}

ExitCode list(const DeadOptions& options) {
  const config::Config config = load(options.config);
  store::DeadLetterFilter filter{group_of(config), options.before, options.topic, options.handler,
                                 options.reason,   options.key,    std::nullopt,  options.limit};
  if (!options.since.empty()) filter.since = duration_option("--since", options.since);
  store::Session session = open_store(config);
  const store::Listed listed = find(session, filter);
  const bool full = static_cast<int>(listed.rows.size()) == options.limit && !filter.key;
  const Json next = full ? listed.rows.back().at("id") : listed.all ? Json() : listed.last;
  if (options.json) {
    print_json({{"dead_letters", listed.rows}, {"next", next}});
    return kDone;
  }
  Table table({"ID", "SINCE", "MESSAGE", "REASON", "ATTEMPTS", "HANDLER", "KEY", "ERROR"});
  for (const Json& row : listed.rows)
    table.add({cell(row.at("id")), time_cell(row.at("created_at")), coordinates_cell(row),
               cell(row.at("reason")), cell(row.at("attempts")), cell(row.at("handler")),
               cut(cell(row.at("key")), 40), cut(cell(row.at("error")), 80)});
  if (table.empty()) {
    print_line("no dead letter of group " + filter.group + " fits");
  } else {
    table.print();
  }
  if (!next.is_null())
    print_line((full ? std::string("more: ")
                     : "looked at " + std::to_string(store::kMaxScan) + "; go on with ") +
               "--before " + cell(next));
  return kDone;
}

// What does exist, for somebody who asked for something that does not.
std::string newest(store::Session& session, const std::string& group) {
  store::DeadLetterFilter filter;
  filter.group = group;
  filter.limit = 1;
  const Json rows = store::list_dead_letters(session, filter).rows;
  if (rows.empty()) return "; group " + group + " has none";
  return "; the newest of group " + group + " is " + cell(rows[0].at("id")) + " (" +
         coordinates_cell(rows[0]) + ")";
}

Json read(store::Session& session, const std::string& group, const std::string& which) {
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

std::string shown(const std::optional<std::string>& bytes) {
  return bytes ? observe::quote_for_terminal(*bytes) : "null";
}

void print_letter(const Json& letter) {
  const auto line = [](const char* name, const std::string& value) {
    print_line(std::string(name) + value);
  };
  line("id           ", cell(letter.at("id")));
  line("message      ", coordinates_cell(letter) + " (group " + cell(letter.at("group_id")) +
                            ", generation " + cell(letter.at("generation")) + ")");
  line("reason       ", cell(letter.at("reason")));
  line("error        ", cell(letter.at("error")));
  line("sqlstate     ", cell(letter.at("sqlstate")));
  line("attempts     ", cell(letter.at("attempts")) + " from " + time_cell(letter.at("first_at")) +
                            " to " + time_cell(letter.at("created_at")));
  line("handler      ", cell(letter.at("handler")) + " " + cell(letter.at("handler_version")));
  line("scope        ", cell(letter.at("scope")));
  line("key          ", cell(letter.at("key")));
  if (!letter.at("tenant").is_null() && letter.at("tenant") != "")
    line("tenant       ", cell(letter.at("tenant")));
  if (!letter.at("fingerprint").is_null())
    line("fingerprint  ",
         cell(letter.at("fingerprint_rule")) + " " + cell(letter.at("fingerprint")));
  if (!letter.at("other").is_null()) line("other        ", letter.at("other").dump());
  line("timestamp    ",
       cell(letter.at("message_timestamp")) + " (" + cell(letter.at("timestamp_type")) + ")");
  line("record key   ", shown(bytes_of_hex(letter.at("message_key"))));
  for (const Json& header : letter.at("headers"))
    line("header       ",
         shown(bytes_of_hex(header.at(0))) + ": " + shown(bytes_of_hex(header.at(1))));
  line("payload      ", shown(bytes_of_hex(letter.at("payload"))));
}

Json json_of(Json letter) {
  for (const char* const name : {"message_key", "payload"})
    letter[name] = bytes_json(bytes_of_hex(letter.at(name)));
  Json headers = Json::array();
  for (const Json& header : letter.at("headers"))
    headers.push_back({{"name", bytes_json(bytes_of_hex(header.at(0)))},
                       {"value", bytes_json(bytes_of_hex(header.at(1)))}});
  letter["headers"] = std::move(headers);
  return letter;
}

ExitCode show(const DeadOptions& options) {
  const config::Config config = load(options.config);
  store::Session session = open_store(config);
  const Json letter = read(session, group_of(config), options.which);
  if (options.payload) {
    const auto payload = bytes_of_hex(letter.at("payload"));
    if (!payload) throw Stop(kFailed, "the payload is null (a tombstone): there are no bytes");
    std::fwrite(payload->data(), 1, payload->size(), stdout);
  } else if (options.json) {
    print_json(json_of(letter));
  } else {
    print_letter(letter);
  }
  return kDone;
}

}  // namespace

void add_dead(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand("dead", "Look at dead letters");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  hapax dead list -c worker.json --reason rejected --since 1d\n"
      "  hapax dead show -c worker.json 17\n"
      "  hapax dead show -c worker.json payments/3/1042 --payload > payload.bin");
  const auto options = std::make_shared<DeadOptions>();
  const auto add = [&](const char* name, const char* what, ExitCode (*action)(const DeadOptions&)) {
    auto* const sub = command->add_subcommand(name, what);
    add_config(*sub, options->config);
    sub->add_flag("--json", options->json,
                  "For programs; bytes as {\"text\"} or, where not UTF-8, {\"base64\"}");
    sub->callback([&line, options, action] {
      line.command = [options, action] { return action(*options); };
    });
    return sub;
  };
  auto* const listing = add("list", "List dead letters of the group, newest first", list);
  listing->add_option("--topic", options->topic, "Only of this topic");
  listing->add_option("--handler", options->handler, "Only of this handler");
  listing->add_option("--reason", options->reason, "Only for this reason, such as rejected");
  listing->add_option("--since", options->since, "Not older than: 15m, 1h, 7d");
  listing->add_option("--key", options->key, "Only of this idempotency key");
  listing->add_option("--before", options->before, "Only ids below this one");
  listing->add_option("--limit", options->limit, "At most so many")->check(CLI::Range(1, 10'000));
  auto* const showing = add("show", "Show a dead letter whole", show);
  showing->add_option("WHICH", options->which, "Its id, or TOPIC/PARTITION/OFFSET")->required();
  showing->add_flag("--payload", options->payload, "The payload's bytes, as they came, to stdout");
}

}  // namespace hapax::app
