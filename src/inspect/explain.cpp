// hapax explain: the story of one message, by its coordinates, or of one operation, by its key.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>

#include "cli/coordinates.hpp"
#include "cli/kafka_reader.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/evidence.hpp"
#include "inspect/key_story.hpp"
#include "inspect/published.hpp"
#include "key/sha256.hpp"
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

// One message, with all that is known of it.
struct Explained {
  Standing standing;
  kafka::OffsetRange log;
  std::vector<std::unique_ptr<kafka::Record>> records;  // one, or none
  Facts facts;
  Json replays = Json::array();
  Json published;
};

Explained gather_one(const config::Config& config, const Place& place) {
  const config::Route& route = route_of(config, place.topic);
  store::Session session = open_store(config);
  KafkaReader reader(config);
  const kafka::TopicPartition partition(place.topic, *place.partition);
  const std::int64_t offset = *place.offset;
  Explained one;
  bool written = false;
  asking_kafka([&] {
    reader.reach(kKafkaTimeout);
    expect_partition(place.topic, reader.consumer().partition_count(place.topic, kKafkaTimeout),
                     *place.partition);
    one.log = reader.consumer().range(partition, kKafkaTimeout);
    one.standing = read_standing(session, group_of(config), route, *place.partition, now_ms());
    if (offset < one.log.low || offset >= one.log.high) return;
    const auto take = [&](auto record) { one.records.push_back(std::move(record)); };
    written = reader.read({{partition, offset, offset + 1}}, take).at(0) > offset;
  });
  const auto known = gather(session, one.standing, route, offset, offset + 1, one.records);
  if (!known.empty()) one.facts = known.front();
  one.facts.offset = offset;
  if (one.records.empty())
    one.facts.in_kafka = offset < one.log.low ? InKafka::deleted
                         : written            ? InKafka::no_record
                                              : InKafka::not_written;
  if (one.facts.dead) one.replays = store::read_replays_of(session, one.facts.dead->id);
  one.published = published_json(config, session, one.standing, one.facts);
  return one;
}

Json text_or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

Json message_json(const Explained& one) {
  if (one.records.empty()) return nullptr;
  const Message& message = one.records.front()->message();
  const auto bytes = [](const std::optional<std::string_view>& view) {
    return bytes_json(view ? std::optional(std::string(*view)) : std::nullopt);
  };
  const auto timestamp = store::timestamp_ms(message);
  return {{"timestamp_ms", timestamp ? Json(*timestamp) : Json()},
          {"record_key", bytes(message.key())},
          {"payload_bytes", message.payload() ? Json(message.payload()->size()) : Json()}};
}

// Of a message that another handler has published.
Json published_by_json(const Explained& one) {
  if (one.records.empty()) return nullptr;
  const auto origin = origin_of(one.records.front()->message());
  return origin ? origin_json(*origin) : Json();
}

Json identity_json(const Facts& facts, const std::string& scope) {
  if (!facts.derived) return nullptr;
  if (const auto* refusal = std::get_if<key::Refusal>(&*facts.derived))
    return {{"refused", refusal->reason}, {"detail", observe::to_valid_utf8(refusal->detail)}};
  const auto* identity = std::get_if<key::Identity>(&*facts.derived);
  if (identity == nullptr) return {{"refused", "tombstone"}, {"detail", "the route skips those"}};
  return {{"key", identity->key},
          {"scope", scope},
          {"tenant", identity->tenant},
          {"fingerprint_rule", identity->fingerprint.rule},
          {"fingerprint", key::hex(identity->fingerprint.digest)}};
}

Json key_json(const Facts& facts) {
  if (!facts.key) return nullptr;
  const store::KeyHolder& holder = facts.key->holder;
  return {{"status", holder.status},
          {"group", holder.group},
          {"topic", holder.topic},
          {"generation", holder.generation},
          {"partition", holder.partition},
          {"offset", holder.offset},
          {"same_payload", facts.same_payload},
          {"updated_at", facts.key->updated_at},
          {"expires_at", facts.key->expires_at}};
}

Json dead_json(const Explained& one) {
  if (!one.facts.dead) return nullptr;
  const store::DeadRow& dead = *one.facts.dead;
  return {{"id", dead.id},
          {"reason", dead.reason},
          {"error", dead.error},
          {"created_at", dead.created_at},
          {"ended_as", text_or_null(dead.ended_as)},
          {"ended_at", text_or_null(dead.ended_at)},
          {"ended_by", text_or_null(dead.ended_by)},
          {"ended_why", text_or_null(dead.ended_why)},
          {"replays", one.replays}};
}

Json attempts_json(const Facts& facts) {
  if (!facts.attempt) return nullptr;
  return {{"count", facts.attempt->count},
          {"crashes", facts.attempt->crashes},
          {"last_error", facts.attempt->last_error},
          {"last_at", facts.attempt->last_at},
          {"next_try", facts.attempt->next_try}};
}

Json jump_json(const store::JumpRow* jump) {
  if (jump == nullptr) return nullptr;
  return {{"from", jump->from ? Json(*jump->from) : Json()},
          {"to", jump->to},
          {"cause", jump->cause},
          {"who", jump->who},
          {"why", jump->why},
          {"at", jump->at}};
}

Json json_of(const Explained& one, const Place& place, const std::string& scope) {
  const Standing& standing = one.standing;
  const Verdict verdict = classify(standing, one.facts);
  return {{"topic", place.topic},
          {"partition", *place.partition},
          {"offset", *place.offset},
          {"group", standing.group},
          {"generation", standing.generation},
          {"verdict", name_of(verdict)},
          {"story", observe::to_valid_utf8(tell(standing, one.facts, verdict))},
          {"log", {{"from", one.log.low}, {"to", one.log.high}}},
          {"checkpoint", standing.checkpoint ? Json(*standing.checkpoint) : Json()},
          {"message", message_json(one)},
          {"published_by", published_by_json(one)},
          {"identity", identity_json(one.facts, scope)},
          {"key", key_json(one.facts)},
          {"dead_letter", dead_json(one)},
          {"attempts", attempts_json(one.facts)},
          {"left_out", jump_json(standing.left_out.at(*place.offset))},
          {"published", one.published},
          {"halt", standing.halt ? Json(standing.halt->reason) : Json()},
          {"other_keys", standing.other_keys}};
}

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

ExitCode code_of(const Explained& one) {
  const Verdict verdict = classify(one.standing, one.facts);
  return verdict == Verdict::unaccounted || verdict == Verdict::not_written ? kFailed : kDone;
}

// Nothing: `why` tells why the message behind a published record is not explained.
std::optional<Explained> gather_origin(const config::Config& config, const store::Source& source,
                                       std::string& why) {
  if (source.group != group_of(config)) {
    why = "for the message, ask with the configuration of group " + source.group;
    return std::nullopt;
  }
  if (source.topic.starts_with('/')) {
    why = "it was a request that a gate of the group took on this path";
    return std::nullopt;
  }
  Explained one = gather_one(config, {source.topic, source.partition, source.offset});
  if (one.standing.generation == source.generation) return one;
  why = "the group reads generation " + std::to_string(one.standing.generation) + " of topic " +
        source.topic + " now: it was made again, and the message is gone";
  return std::nullopt;
}

// A record of a topic that handlers publish to and no route consumes: its message.
ExitCode explain_published(const ExplainOptions& options, const config::Config& config,
                           const Place& place) {
  const Origin origin = read_origin(config, place);
  const store::Source& source = origin.source;
  std::string why;
  const auto one = gather_origin(config, source, why);
  const Json json = one ? json_of(*one, {source.topic, source.partition, source.offset},
                                  route_of(config, source.topic).key.scope)
                        : Json();
  if (options.json) {
    print_json({{"topic", place.topic},
                {"partition", *place.partition},
                {"offset", *place.offset},
                {"published_by", origin_json(origin)},
                {"message", json}});
  } else {
    print_line(options.place + ": published by " + name_of(origin));
    if (one)
      print_one(json);
    else
      print_line(why);
  }
  return one ? code_of(*one) : kDone;
}

ExitCode explain_message(const ExplainOptions& options) {
  const auto place = parse_place(options.place);
  if (!place || !place->offset)
    throw Stop(kUsage, "\"" + options.place + "\" is not TOPIC/PARTITION/OFFSET");
  const config::Config config = load(options.config);
  const bool consumed = std::ranges::count(config.routes, place->topic, &config::Route::topic) > 0;
  if (!consumed && std::ranges::count(config.publish.topics, place->topic) > 0)
    return explain_published(options, config, *place);
  const Explained one = gather_one(config, *place);
  const Json json = json_of(one, *place, route_of(config, place->topic).key.scope);
  if (options.json) {
    print_json(json);
  } else {
    print_one(json);
  }
  return code_of(one);
}

ExitCode explain(const ExplainOptions& options) {
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  if (options.key.key.empty() == options.place.empty())
    throw Stop(kUsage, "give either TOPIC/PARTITION/OFFSET or --key");
  if (!options.place.empty()) return explain_message(options);
  return explain_key(load(options.config), options.key, options.json);
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
