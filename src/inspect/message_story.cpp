#include "inspect/message_story.hpp"

#include <algorithm>

#include "cli/kafka_reader.hpp"
#include "cli/store_access.hpp"
#include "inspect/evidence.hpp"
#include "inspect/published.hpp"
#include "key/sha256.hpp"
#include "observe/escape.hpp"

namespace hapax::app {
namespace {

// One message, with all that is known of it.
struct Explained {
  Standing standing;
  kafka::OffsetRange log;
  std::vector<std::unique_ptr<kafka::Record>> records;  // one, or none
  Facts facts;
  Json replays = Json::array();
  Json published;
};

Explained gather_one(const config::Config& config, store::Session& session, const Place& place) {
  const config::Route& route = route_of(config, place.topic);
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

Json json_of(const config::Config& config, const Explained& one, const Place& place) {
  const std::string& scope = route_of(config, place.topic).key.scope;
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

bool is_accounted(const Explained& one) {
  const Verdict verdict = classify(one.standing, one.facts);
  return verdict != Verdict::unaccounted && verdict != Verdict::not_written;
}

// Nothing: `why` tells why the message behind a published record is not explained.
std::optional<Explained> gather_origin(const config::Config& config, store::Session& session,
                                       const store::Source& source, std::string& why) {
  if (source.group != group_of(config)) {
    why = "for the message, ask with the configuration of group " + source.group;
    return std::nullopt;
  }
  if (source.topic.starts_with('/')) {
    why = "it was a request that a gate of the group took on this path";
    return std::nullopt;
  }
  Explained one = gather_one(config, session, {source.topic, source.partition, source.offset});
  if (one.standing.generation == source.generation) return one;
  why = "the group reads generation " + std::to_string(one.standing.generation) + " of topic " +
        source.topic + " now: it was made again, and the message is gone";
  return std::nullopt;
}

// A record of a topic that handlers publish to and no route consumes: its message.
Story tell_published(const config::Config& config, store::Session& session, const Place& place) {
  const Origin origin = read_origin(config, place);
  const store::Source& source = origin.source;
  Story story;
  story.published_by = name_of(origin);
  const auto one = gather_origin(config, session, source, story.untold);
  story.json = {
      {"topic", place.topic},
      {"partition", *place.partition},
      {"offset", *place.offset},
      {"published_by", origin_json(origin)},
      {"message",
       one ? json_of(config, *one, {source.topic, source.partition, source.offset}) : Json()}};
  story.accounted = !one || is_accounted(*one);
  return story;
}

}  // namespace

Story tell_message(const config::Config& config, store::Session& session, const Place& place) {
  const bool consumed = std::ranges::count(config.routes, place.topic, &config::Route::topic) > 0;
  if (!consumed && std::ranges::count(config.publish.topics, place.topic) > 0)
    return tell_published(config, session, place);
  const Explained one = gather_one(config, session, place);
  return {json_of(config, one, place), {}, {}, is_accounted(one)};
}

}  // namespace hapax::app
