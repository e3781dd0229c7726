#include "payload/reader.hpp"

#include <algorithm>

#include "payload/avro.hpp"
#include "payload/protobuf/decoder.hpp"

namespace hapax::payload {
namespace {

using Format = config::Payload::Format;

Reading unreadable(std::string reason, std::string detail) {
  return {.state = Reading::State::unreadable,
          .reason = std::move(reason),
          .detail = std::move(detail)};
}

std::shared_ptr<const Decoder> make_decoder(Format format, const SchemaText& schema) {
  const std::string wanted = format == Format::avro ? "AVRO" : "PROTOBUF";
  if (schema.type != wanted)
    throw NotDecodable("the schema is of type " + schema.type + ", and payload.format wants " +
                       wanted);
  if (format == Format::avro) return std::make_shared<const AvroDecoder>(schema);
  return std::make_shared<const ProtobufDecoder>(schema);
}

std::unique_ptr<Registry> registry_of(const config::Payload& payload, HttpGet get) {
  if (!get) return nullptr;
  return std::make_unique<Registry>(payload.registry.url, std::move(get),
                                    payload.registry.unknown_timeout);
}

}  // namespace

Reader::Reader(const config::Payload& payload)
    : Reader(payload, payload.registry.url.empty() ? HttpGet() : http_get(payload.registry)) {}

Reader::Reader(const config::Payload& payload, HttpGet get)
    : format_(payload.format),
      schema_(payload.schema.empty() ? nullptr : read_json_schema(payload.schema)),
      registry_(registry_of(payload, std::move(get))) {}

// A tombstone has nothing to decode, and JSON is there without a schema.
std::variant<Reading, Framed> Reader::frame(const Message& message) const {
  if (!message.payload()) return Reading{};
  auto framed = unframe(message, format_ == Format::protobuf);
  if (const auto* const error = std::get_if<NotFramed>(&framed))
    return unreadable("not_decodable", error->why);
  Framed& found = std::get<Framed>(framed);
  if (format_ == Format::json) return Reading{.json = std::string(found.body)};
  return std::move(found);
}

std::optional<Reading> Reader::read_at_once(const Message& message) const {
  auto framed = frame(message);
  if (auto* const reading = std::get_if<Reading>(&framed)) return std::move(*reading);
  const Framed& found = std::get<Framed>(framed);
  if (const auto decoder = known(found.schema)) return decoded(*decoder, found);
  return std::nullopt;
}

Reading Reader::read(const Message& message) const {
  auto framed = frame(message);
  if (auto* const reading = std::get_if<Reading>(&framed)) return std::move(*reading);
  const Framed& found = std::get<Framed>(framed);
  if (const auto decoder = known(found.schema)) return decoded(*decoder, found);
  const sync::Lock asking(asking_);
  if (const auto decoder = known(found.schema)) return decoded(*decoder, found);
  try {
    auto answer = registry_->find(found.schema);
    registry_is_up_ = registry_->is_up();
    if (auto* const not_now = std::get_if<Registry::NotNow>(&answer))
      return {.state = Reading::State::away,
              .reason = kRegistry,
              .detail = std::move(not_now->why),
              .wait = not_now->wait};
    if (auto* const unknown = std::get_if<Registry::Unknown>(&answer))
      return unreadable("unknown_schema", std::move(unknown->why));
    return decoded(learn(found.schema, make_decoder(format_, std::get<SchemaText>(answer))), found);
  } catch (const NotDecodable& error) {
    return decoded(learn(found.schema, found.schema + ": " + error.what()), found);
  }
}

std::optional<bool> Reader::registry_is_up() const {
  if (!registry_) return std::nullopt;
  return registry_is_up_;
}

std::optional<Reader::Known> Reader::known(const std::string& path) const {
  const sync::Lock lock(mutex_);
  const auto found = decoders_.find(path);
  if (found == decoders_.end()) return std::nullopt;
  found->second.last_use = ++uses_;
  return found->second.known;
}

Reader::Known Reader::learn(const std::string& path, Known known) const {
  const sync::Lock lock(mutex_);
  if (decoders_.size() >= kMaxDecoders)
    decoders_.erase(std::ranges::min_element(
        decoders_, {}, [](const auto& entry) { return entry.second.last_use; }));
  return decoders_.insert_or_assign(path, Kept{std::move(known), ++uses_}).first->second.known;
}

Reading Reader::decoded(const Known& known, const Framed& framed) {
  if (const auto* const why = std::get_if<std::string>(&known))
    return unreadable("not_decodable", *why);
  try {
    const auto& decoder = std::get<std::shared_ptr<const Decoder>>(known);
    return {.json = decoder->decode(framed), .type = decoder->type(framed)};
  } catch (const NotDecodable& error) {
    return unreadable("not_decodable", framed.schema + ": " + error.what());
  }
}

std::optional<key::Refusal> Reader::violation(const Message& message) const {
  if (!schema_ || !message.payload()) return std::nullopt;
  try {
    auto violated = schema_->violation(message.json());
    if (!violated) return std::nullopt;
    return key::Refusal{"schema_violation",
                        "the payload violates the schema, " + *std::move(violated)};
  } catch (const BadPayload& error) {
    return key::Refusal{"not_json", error.what()};
  }
}

std::shared_ptr<const Reader> make_reader(const config::Payload& payload) {
  if (payload == config::Payload{}) return nullptr;
  return std::make_shared<const Reader>(payload);
}

std::unique_ptr<ReadMessage> read_message(const Reader* reader, const Message& message,
                                          bool may_ask) {
  if (reader == nullptr || !reader->decodes()) return nullptr;
  if (may_ask) return std::make_unique<ReadMessage>(message, reader->read(message));
  auto known = reader->read_at_once(message);
  if (!known)
    known = Reading{.state = Reading::State::away,
                    .reason = kRegistry,
                    .detail = "the schema registry is asked for other schemas first"};
  return std::make_unique<ReadMessage>(message, *std::move(known));
}

}  // namespace hapax::payload
