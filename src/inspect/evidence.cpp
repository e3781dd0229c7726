#include "inspect/evidence.hpp"

#include <chrono>
#include <map>
#include <stdexcept>

#include "payload/reader.hpp"

namespace hapax::app {
namespace {

// As a worker derives it.
key::Derived derived(const key::KeySpec& spec, const Message& message,
                     const payload::ReadMessage* read, std::int32_t generation) {
  if (read == nullptr) return key::identify(spec, message, generation);
  if (read->reading.state == payload::Reading::State::away)
    throw Stop(kUnreachable, read->reading.detail);
  if (!read->reading.is_readable()) return key::Refusal{read->reading.reason, read->reading.detail};
  return key::identify(spec, read->message, generation);
}

// These commands do not wait for a schema that the registry does not know.
std::shared_ptr<const payload::Reader> reader_of(config::Payload payload) {
  payload.schema.clear();
  payload.registry.unknown_timeout = std::chrono::milliseconds(0);
  return payload::make_reader(payload);
}

}  // namespace

const config::Route& route_of(const config::Config& config, const std::string& topic) {
  std::string topics;
  for (const config::Route& route : config.routes) {
    if (route.topic == topic) return route;
    topics += (topics.empty() ? "" : ", ") + route.topic;
  }
  throw Stop(kFailed, "no route has topic \"" + topic + "\"; there is: " + topics);
}

void expect_partition(const std::string& topic, int count, std::int32_t partition) {
  if (count == 0) throw Stop(kUnreachable, "Kafka has no topic \"" + topic + "\"");
  if (partition >= count)
    throw Stop(kFailed, "topic " + topic + " has no partition " + std::to_string(partition) +
                            "; it has 0 to " + std::to_string(count - 1));
}

void asking_kafka(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Stop&) {
    throw;
  } catch (const store::DatabaseError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Stop(kUnreachable, std::string("Kafka: ") + error.what());
  }
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Standing read_standing(store::Session& session, const std::string& group,
                       const config::Route& route, std::int32_t partition, std::int64_t now_ms) {
  Standing standing;
  standing.group = group;
  standing.partition = {route.topic, partition};
  standing.retention = route.retention;
  standing.by_position = key::is_by_position(route.key);
  standing.now_ms = now_ms;
  standing.reader = reader_of(route.payload);
  // First: what is below it now was settled before all that is read from here on.
  if (const auto row = store::read_checkpoint(session, group, standing.partition)) {
    standing.generation = row->generation;
    standing.checkpoint = row->next_offset;
    standing.other_keys = !row->accepts(key::spec_digest(route.key));
  }
  standing.left_out =
      LeftOut(store::read_jumps(session, group, standing.partition, standing.generation));
  if (standing.by_position)
    standing.same_topic =
        store::read_same_topic(session, group, standing.partition, standing.generation);
  for (const store::Halt& halt : store::read_halts(session, group))
    if (halt.stops(standing.partition)) standing.halt = halt;
  return standing;
}

std::vector<Facts> gather(store::Session& session, const Standing& standing,
                          const config::Route& route, std::int64_t from, std::int64_t to,
                          std::span<const std::unique_ptr<kafka::Record>> records) {
  std::map<std::int64_t, Facts> found;
  std::vector<Facts*> keyed;
  std::vector<const Message*> messages;
  std::vector<std::unique_ptr<payload::ReadMessage>> decoded;
  std::vector<const key::Identity*> identities;
  for (const auto& record : records) {
    const Message& message = record->message();
    Facts& facts = found[message.offset()];
    facts.in_kafka = InKafka::record;
    facts.timestamp_ms = store::timestamp_ms(message);
    const auto& read = decoded.emplace_back(payload::read_message(standing.reader.get(), message));
    facts.derived = derived(route.key, message, read.get(), standing.generation);
    if (const auto* identity = std::get_if<key::Identity>(&*facts.derived)) {
      keyed.push_back(&facts);
      messages.push_back(read ? &read->message : &message);
      identities.push_back(identity);
    }
  }
  const auto keys = store::read_key_rows(session, route.key.scope, identities);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i]) continue;
    keyed[i]->key = keys[i];
    keyed[i]->same_payload = key::same_payload(route.key, *messages[i], identities[i]->fingerprint,
                                               keys[i]->holder.fingerprint);
  }
  const store::Stretch stretch{standing.group, standing.partition, standing.generation, from, to};
  for (auto& [offset, dead] : store::read_dead_rows(session, stretch))
    found[offset].dead = std::move(dead);
  for (auto& [offset, attempt] : store::read_attempt_rows(session, stretch))
    found[offset].attempt = std::move(attempt);
  if (standing.by_position)
    for (const std::int64_t offset : store::read_settled(session, stretch))
      found[offset].settled = true;
  std::vector<Facts> facts;
  facts.reserve(found.size());
  for (auto& [offset, one] : found) {
    one.offset = offset;
    facts.push_back(std::move(one));
  }
  return facts;
}

}  // namespace hapax::app
