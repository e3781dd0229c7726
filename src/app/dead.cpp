// hapax dead list|show: messages that were given up on, and what became of them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "app/dead_letters.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "observe/escape.hpp"
#include "payload/reader.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

struct DeadOptions {
  ConfigOption config;
  std::string which;
  LetterFilter filter;
  std::string state = "open";
  std::optional<std::int64_t> before;
  int limit = 50;
  bool json = false;
  bool payload = false;
};

ExitCode list(const DeadOptions& options) {
  const config::Config config = load(options.config);
  store::DeadLetterFilter filter = list_filter(options.filter, group_of(config));
  filter.before = options.before;
  filter.limit = options.limit;
  if (options.state != "all") filter.state = options.state;
  store::Session session = open_letters(config);
  const store::Listed listed = list_letters(session, filter);
  const bool full = static_cast<int>(listed.rows.size()) == options.limit;
  const Json next = next_page(listed, options.limit);
  if (options.json) {
    print_json({{"dead_letters", listed.rows}, {"next", next}});
    return kDone;
  }
  Table table({"ID", "SINCE", "MESSAGE", "STATE", "REASON", "ATTEMPTS", "HANDLER", "KEY", "TENANT",
               "ERROR"});
  for (const Json& row : listed.rows)
    table.add({cell(row.at("id")), time_cell(row.at("created_at")), coordinates_cell(row),
               row.at("replay_wanted") == true    ? "replay-wanted"
               : row.at("completed_by").is_null() ? cell(row.at("state"))
                                                  : "completed-since",
               cell(row.at("reason")), cell(row.at("attempts")), cell(row.at("handler")),
               cut(cell(row.at("key")), 40), tenant_cell(row), cut(cell(row.at("error")), 80)});
  table.leave_out_if_empty(8);
  if (table.empty()) {
    print_line("no " + (options.state == "all" ? "" : options.state + " ") +
               "dead letter of group " + filter.group + " fits");
  } else {
    table.print();
  }
  if (!next.is_null())
    print_line((full ? std::string("more: ")
                     : "looked at " + std::to_string(store::kMaxScan) + "; go on with ") +
               "--before " + cell(next));
  return kDone;
}

std::string shown(const std::optional<std::string>& bytes) {
  return bytes ? observe::quote_for_terminal(*bytes) : "null";
}

// The payload as the route decodes it, or why it cannot. Null: it does not decode, or there is
// nothing to decode.
Json decoded_payload(const config::Config& config, const Json& letter) {
  const auto route = std::ranges::find(config.routes, letter.at("topic").get<std::string>(),
                                       &config::Route::topic);
  const auto payload = bytes_of_hex(letter.at("payload"));
  if (route == config.routes.end() || !payload) return nullptr;
  config::Payload rules = route->payload;
  rules.schema.clear();
  rules.registry.unknown_timeout = std::chrono::milliseconds(0);  // this command does not wait
  const auto reader = payload::make_reader(rules);
  std::vector<std::pair<std::string, std::optional<std::string>>> bytes;
  for (const Json& header : letter.at("headers"))
    bytes.emplace_back(bytes_of_hex(header.at(0)).value_or(""), bytes_of_hex(header.at(1)));
  std::vector<Header> headers;
  for (const auto& [name, value] : bytes) headers.push_back({name, value});
  Message::Parts parts;
  parts.payload = payload;
  parts.headers = headers;
  const auto read = payload::read_message(reader.get(), Message(parts));
  if (!read) return nullptr;
  if (!read->reading.is_readable()) return {{"error", read->reading.detail}};
  return {{"json", read->reading.json}};
}

void print_letter(const config::Config& config, const Json& letter) {
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
  if (const Json& other = letter.at("other"); !other.is_null()) {
    line("other        ", other.dump());
    if (other.contains("trace_id")) line("trace        ", cell(other.at("trace_id")));
  }
  line("timestamp    ",
       cell(letter.at("message_timestamp")) + " (" + cell(letter.at("timestamp_type")) + ")");
  const bool kept = has_bytes(letter);
  if (kept) line("record key   ", shown(bytes_of_hex(letter.at("message_key"))));
  for (const Json& header : letter.at("headers"))
    line("header       ",
         shown(bytes_of_hex(header.at(0))) + ": " + shown(bytes_of_hex(header.at(1))));
  if (!kept)
    return line("payload      ", letter.at("headers").empty()
                                     ? "not kept, nor are key and headers"
                                     : "not kept, nor are key and other headers");
  line("payload      ", shown(bytes_of_hex(letter.at("payload"))));
  if (const Json decoded = decoded_payload(config, letter); decoded.contains("json"))
    line("decoded      ", shown(decoded.at("json").get<std::string>()));
  else if (!decoded.is_null())
    line("decoded      ", "not: " + cell(decoded.at("error")));
}

// What became of it since, and of each replay.
void print_since(const Json& letter) {
  print_line("state        " + cell(letter.at("state")) +
             (letter.at("ended_at").is_null()
                  ? ""
                  : " at " + time_cell(letter.at("ended_at")) + " by " +
                        cell(letter.at("ended_by")) + ": " + cell(letter.at("ended_why"))));
  if (const Json& by = letter.at("completed_by"); !by.is_null())
    print_line("completed    since, by " + cell(by) +
               ": a replay would be refused; end the letter with `hapax dead discard`");
  if (const Json& again = letter.at("failed_again"); !again.is_null())
    print_line("failed again " + time_cell(again.at("last_at")) + ": " +
               cell(again.at("last_error")) +
               (again.at("sqlstate").is_null() ? "" : " (" + cell(again.at("sqlstate")) + ")"));
  for (const Json& replay : letter.at("replays")) {
    const bool open = replay.at("outcome").is_null();
    print_line(
        "replay       " + cell(replay.at("id")) + " wanted " + time_cell(replay.at("wanted_at")) +
        " by " + cell(replay.at("who")) + ": " + cell(replay.at("why")) +
        (replay.at("edited") == true ? " (edited payload)" : "") + "; " +
        (open ? "open" : cell(replay.at("outcome")) + " " + time_cell(replay.at("ended_at"))) +
        ", runs " + cell(replay.at("runs")));
    const Json& told = open ? replay.at("last_error") : replay.at("detail");
    if (!told.is_null()) print_line("             " + cell(told));
  }
}

ExitCode show(const DeadOptions& options) {
  const config::Config config = load(options.config);
  store::Session session = open_letters(config);
  const Json letter = read_letter(session, group_of(config), options.which);
  if (options.payload) {
    if (!has_bytes(letter))
      throw Stop(kFailed, "its message is not kept (more than PostgreSQL takes, or erased); read " +
                              coordinates_cell(letter) + " from Kafka");
    print_payload(bytes_of_hex(letter.at("payload")));
  } else if (options.json) {
    Json shown_letter = letter_json(letter);
    if (has_bytes(letter)) shown_letter["decoded"] = decoded_payload(config, letter);
    print_json(shown_letter);
  } else {
    print_letter(config, letter);
    print_since(letter);
  }
  return kDone;
}

}  // namespace

void add_dead(CLI::App& app, CommandLine& line) {
  auto* const command =
      app.add_subcommand("dead", "Look at dead letters, run them again, or discard them");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  hapax dead list -c worker.json --reason rejected --since 1d\n"
      "  hapax dead show -c worker.json 17\n"
      "  hapax dead show -c worker.json payments/3/1042 --payload > payload.bin\n"
      "  hapax dead replay -c worker.json --url $OPERATOR --reason rejected --since 1d --why "
      "'fixed in 1.4'");
  const auto options = std::make_shared<DeadOptions>();
  const auto add = [&](const char* name, const char* what, ExitCode (*action)(const DeadOptions&)) {
    auto* const sub = command->add_subcommand(name, what);
    add_config(*sub, options->config);
    sub->add_flag("--json", options->json,
                  "For programs; bytes as {\"text\"}, or as {\"base64\"} if they are not UTF-8");
    sub->callback([&line, options, action] {
      line.command = [options, action] { return action(*options); };
    });
    return sub;
  };
  auto* const listing = add("list", "List dead letters of the group, newest first", list);
  add_filter(*listing, options->filter);
  listing->add_option("--state", options->state, "open (default), replayed, discarded or all")
      ->check(CLI::IsMember({"open", "replayed", "discarded", "all"}));
  listing->add_option("--before", options->before, "Only ids below this one");
  listing->add_option("--limit", options->limit, "At most so many")->check(CLI::Range(1, 10'000));
  auto* const showing = add("show", "Show a dead letter whole", show);
  showing->add_option("WHICH", options->which, "Its id, or TOPIC/PARTITION/OFFSET")->required();
  showing->add_flag("--payload", options->payload,
                    "The payload's bytes, as they came, to stdout; escaped on a terminal");
  add_dead_replay(*command, line);
  add_dead_discard(*command, line);
  add_dead_export(*command, line);
}

}  // namespace hapax::app
