#include "key/key_source.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "key/canonical_json.hpp"
#include "key/json_pointer.hpp"
#include "key/key_text.hpp"
#include "key/sha256.hpp"

namespace hapax::key {
namespace {

using ReadPart = std::variant<Part, Flawed>;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_case(x) == lower_case(y); });
}

// librdkafka cuts header names at NUL, so a producer that can add a header "idempotency-key\0x"
// adds a
// second "idempotency-key". So all of them must agree; taking the first would be theirs to steer.
ReadPart header_part(const std::string& name, bool unquote, const Message& message) {
  std::optional<std::string> taken;
  for (const Header& header : message.headers()) {
    if (!header.value || !equal_ignoring_case(header.name, name)) continue;
    std::optional<std::string> value;
    if (unquote) value = unquoted(*header.value);
    if (!value) value = std::string(*header.value);
    if (taken && *taken != *value)
      return Flawed{Flaw::ambiguous,
                    "header '" + name + "' came more than once, with different values"};
    taken = std::move(value);
  }
  if (!taken) return Flawed{Flaw::absent, "header '" + name + "' is not there"};
  if (taken->empty()) return Flawed{Flaw::empty, "header '" + name + "' is empty"};
  return Part{Part::Type::bytes, *std::move(taken)};
}

ReadPart json_part(const std::string& pointer, Document& document) {
  if (!document.message().payload()) return Flawed{Flaw::absent, "the payload is null"};
  const auto& parsed = document.json();
  if (const auto* error = std::get_if<NotJson>(&parsed))
    return Flawed{Flaw::not_json, not_json(*error).detail};
  const nlohmann::json* value = find(std::get<nlohmann::json>(parsed), pointer);
  if (value == nullptr || value->is_null())
    return Flawed{Flaw::absent, "JSON pointer '" + pointer + "' names nothing, or null"};
  const auto* text = value->get_ptr<const std::string*>();
  if (text != nullptr ? text->empty() : value->is_structured() && value->empty())
    return Flawed{Flaw::empty, "JSON pointer '" + pointer + "' names something empty"};
  if (text != nullptr) return Part{Part::Type::bytes, *text};
  return Part{Part::Type::json, canonical_json(*value)};
}

std::variant<std::string, Flawed> named_parts(const Source& source, Document& document) {
  std::vector<Part> parts;
  std::optional<Flawed> worst;
  for (const std::string& name : source.names) {
    ReadPart read = source.kind == Source::Kind::header
                        ? header_part(name, source.unquote, document.message())
                        : json_part(name, document);
    if (auto* flawed = std::get_if<Flawed>(&read)) {
      if (!worst || flawed->flaw > worst->flaw) worst = std::move(*flawed);
    } else {
      parts.push_back(std::move(std::get<Part>(read)));
    }
  }
  if (worst) return *std::move(worst);
  if (parts.size() == 1) return encode_part(parts[0]);
  return encode_parts("", parts);
}

std::variant<std::string, Flawed> record_key(const Message& message) {
  if (!message.key()) return Flawed{Flaw::absent, "the record key is null"};
  if (message.key()->empty()) return Flawed{Flaw::empty, "the record key is empty"};
  return encode_key(*message.key());
}

std::variant<std::string, Flawed> content_hash(const Message& message) {
  if (!message.payload()) return Flawed{Flaw::absent, "the payload is null"};
  if (message.payload()->empty()) return Flawed{Flaw::empty, "the payload is empty"};
  return encode_parts("content",
                      std::array{Part{Part::Type::bytes, hex(sha256(*message.payload()))}});
}

std::string coordinates(const Message& message, std::int32_t generation) {
  return encode_parts("at", std::array{Part{Part::Type::bytes, std::string(message.topic())},
                                       Part{Part::Type::json, std::to_string(generation)},
                                       Part{Part::Type::json, std::to_string(message.partition())},
                                       Part{Part::Type::json, std::to_string(message.offset())}});
}

}  // namespace

std::optional<std::string> unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::nullopt;
  value = value.substr(1, value.size() - 2);
  std::string content;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] < 0x20 || value[i] > 0x7E || value[i] == '"') return std::nullopt;
    if (value[i] == '\\') {
      ++i;
      if (i == value.size() || (value[i] != '"' && value[i] != '\\')) return std::nullopt;
    }
    content += value[i];
  }
  return content;
}

char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::variant<std::string, Flawed> read_source(const Source& source, Document& document,
                                              std::int32_t generation) {
  switch (source.kind) {
    case Source::Kind::header:
    case Source::Kind::json: return named_parts(source, document);
    case Source::Kind::record_key: return record_key(document.message());
    case Source::Kind::content_hash: return content_hash(document.message());
    case Source::Kind::coordinates:
    case Source::Kind::position: break;
  }
  return coordinates(document.message(), generation);
}

std::string description(const Source& source) {
  std::string names;
  for (const std::string& name : source.names) {
    if (!names.empty()) names += " and ";
    names += "'" + name + "'";
  }
  switch (source.kind) {
    case Source::Kind::header: return "header " + names;
    case Source::Kind::json: return "JSON pointer " + names;
    case Source::Kind::record_key: return "record key";
    case Source::Kind::content_hash: return "content hash";
    case Source::Kind::position: return "position";
    case Source::Kind::coordinates: break;
  }
  return "coordinates";
}

}  // namespace hapax::key
