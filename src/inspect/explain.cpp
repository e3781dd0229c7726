// hapax explain: the story of one message, by its coordinates, or of one operation, by its key.
#include <CLI/CLI.hpp>
#include <ctime>

#include "cli/coordinates.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/evidence.hpp"
#include "inspect/key_story.hpp"
#include "inspect/message_story.hpp"
#include "inspect/published.hpp"
#include "observe/escape.hpp"
#include "observe/log.hpp"

namespace hapax::app {
namespace {

struct ExplainOptions {
  ConfigOption config;
  std::string place;
  KeyWanted key;
  bool json = false;
};

// Of bytes_json().
std::string shown(const Json& bytes) {
  if (bytes.is_null()) return "null";
  if (!bytes.contains("text")) return "base64 " + cell(bytes.at("base64"));
  return observe::quote_for_terminal(bytes.at("text").get<std::string>());
}

// Milliseconds since 1970 in UTC, as time_cell() shows times.
std::string moment(const Json& since_1970) {
  if (since_1970.is_null()) return "none";
  const std::time_t whole_seconds = since_1970.get<std::int64_t>() / 1000;
  std::tm parts{};
  char text[64];
  if (gmtime_r(&whole_seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return cell(since_1970) + " ms";  // producers write what they like
  return text;
}

void print_message(const Json& message, const Json& log) {
  if (message.is_null()) {
    print_line("in Kafka     no; the log holds " + cell(log.at("from")) + " to " +
               cell(log.at("to")) + ", the last not included");
    return;
  }
  const Json& payload = message.at("payload_bytes");
  print_line("in Kafka     yes, " + (payload.is_null() ? "a tombstone" : cell(payload) + " bytes") +
             ", timestamp " + moment(message.at("timestamp_ms")) + ", record key " +
             shown(message.at("record_key")));
}

void print_one(const Json& one) {
  const auto line = [](const char* name, const std::string& value) {
    print_line(std::string(name) + value);
  };
  print_line(cell(one.at("topic")) + "/" + cell(one.at("partition")) + "/" +
             cell(one.at("offset")) + ": " + cell(one.at("verdict")));
  print_line(cell(one.at("story")));
  line("group        ", cell(one.at("group")) + ", generation " + cell(one.at("generation")) +
                            ", checkpoint " + cell(one.at("checkpoint")));
  print_message(one.at("message"), one.at("log"));
  if (const Json& identity = one.at("identity"); identity.contains("key")) {
    line("key          ", cell(identity.at("key")) + " in scope " + cell(identity.at("scope")) +
                              (identity.at("tenant") == "" ? "" : ", tenant ") +
                              cell(identity.at("tenant")));
    line("fingerprint  ",
         cell(identity.at("fingerprint_rule")) + " " + cell(identity.at("fingerprint")));
  }
  if (const Json& key = one.at("key"); !key.is_null())
    line("its key is   ", cell(key.at("status")) + ", by " + cell(key.at("topic")) + "/" +
                              cell(key.at("partition")) + "/" + cell(key.at("offset")) +
                              " (group " + cell(key.at("group")) + ", generation " +
                              cell(key.at("generation")) + "), expires " +
                              time_cell(key.at("expires_at")));
  if (const Json& attempts = one.at("attempts"); !attempts.is_null())
    line("failed       ", cell(attempts.at("count")) + " times, the last at " +
                              time_cell(attempts.at("last_at")) + ": " +
                              cell(attempts.at("last_error")));
  if (const Json& dead = one.at("dead_letter"); !dead.is_null()) {
    line("dead letter  ", cell(dead.at("id")) + ", " + cell(dead.at("reason")) +
                              "; hapax dead show " + cell(dead.at("id")));
    for (const Json& replay : dead.at("replays")) line("replay       ", replay_line(replay));
  }
  if (const Json& by = one.at("published_by"); !by.is_null())
    line("published by ", cell(by.at("topic")) + "/" + cell(by.at("partition")) + "/" +
                              cell(by.at("offset")) + " of group " + cell(by.at("group")));
  print_published(one.at("published"));
  if (one.at("other_keys") == true) print_line(kOtherKeys);
}

ExitCode explain_message(const ExplainOptions& options) {
  const auto place = parse_place(options.place);
  if (!place || !place->offset)
    throw Stop(kUsage, "\"" + options.place + "\" is not TOPIC/PARTITION/OFFSET");
  const config::Config config = load(options.config);
  store::Session session = open_store(config);
  const Story story = tell_message(config, session, *place);
  if (options.json) {
    print_json(story.json);
  } else if (story.published_by.empty()) {
    print_one(story.json);
  } else {
    print_line(options.place + ": published by " + story.published_by);
    if (story.untold.empty())
      print_one(story.json.at("message"));
    else
      print_line(story.untold);
  }
  return story.accounted ? kDone : kFailed;
}

ExitCode explain(const ExplainOptions& options) {
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  if (options.key.key.empty() == options.place.empty())
    throw Stop(kUsage, "give either TOPIC/PARTITION/OFFSET or --key");
  if (!options.place.empty()) return explain_message(options);
  return explain_key(load_worker_or_gate(options.config), options.key, options.json);
}

}  // namespace

void add_explain(CLI::App& app, CommandLine& line) {
  auto* const command =
      app.add_subcommand("explain",
                         "Tell what happened to a message, or under an idempotency key; or which "
                         "message has published a record");
  const auto options = std::make_shared<ExplainOptions>();
  add_config(*command, options->config);
  command->add_option(
      "WHICH", options->place,
      "TOPIC/PARTITION/OFFSET of a message, or of a record that a handler published");
  command->add_option("--key", options->key.key, "As hapax prints it, or as the producer sends it");
  command->add_option("--scope", options->key.scope, "With --key: only this scope");
  command->add_option("--tenant", options->key.tenant, "With --key: only this tenant");
  command->add_flag("--json", options->json, "For programs");
  command->footer(
      "Exit code 1 if nothing explains it, or if nothing is there.\n\n"
      "Examples:\n"
      "  hapax explain -c worker.json payments/3/1042\n"
      "  hapax explain -c worker.json receipts/0/42\n"
      "  hapax explain -c worker.json --key payment-17 --json");
  command->callback([&line, options] { line.command = [options] { return explain(*options); }; });
}

}  // namespace hapax::app
