#include "payload/protobuf/decoder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "payload/json_text.hpp"
#include "payload/protobuf/fields.hpp"
#include "payload/protobuf/imports.hpp"
#include "payload/protobuf/times.hpp"

namespace hapax::payload {
namespace protobuf {
namespace {

namespace pb = google::protobuf;

// A message that comes in parts is copied, again on each level below it.
constexpr std::size_t max_joined(std::size_t payload_bytes) {
  return (std::size_t{16} << 20) + 4 * payload_bytes;
}

using FieldType = pb::FieldDescriptor::Type;
using Known = pb::Descriptor::WellKnownType;

Known known_type(const pb::Descriptor& type) {
  const Known known = type.well_known_type();
  if (known == Known::WELLKNOWNTYPE_UNSPECIFIED || is_library_file(type.file()->name()))
    return known;
  return Known::WELLKNOWNTYPE_UNSPECIFIED;  // by its name only
}

class Writing {
 public:
  Writing(const Schema& schema, std::size_t payload_bytes)
      : schema_(schema),
        max_joined_(max_joined(payload_bytes)),
        json_(max_text(payload_bytes), kNoFit) {}

  void message(const pb::Descriptor& type, std::string_view bytes, std::size_t level) {
    if (level > kMaxLevels) misfit("it nests too deep");
    const std::vector<Field> fields = fields_of(schema_, type, bytes);
    switch (known_type(type)) {
      case Known::WELLKNOWNTYPE_TIMESTAMP: return time(fields, timestamp_text);
      case Known::WELLKNOWNTYPE_DURATION: return time(fields, duration_text);
      case Known::WELLKNOWNTYPE_VALUE: check_value(fields); break;
      case Known::WELLKNOWNTYPE_UNSPECIFIED:
      case Known::WELLKNOWNTYPE_ANY:
      case Known::WELLKNOWNTYPE_FIELDMASK: return members(fields, level);
      default: break;
    }
    // The others stand for the value of their only field, or of a oneof.
    if (!fields.empty()) return member(fields, level);
    if (type.field_count() > 1) return json_.add("null");  // a Value
    nothing(*type.field(0), level);
  }

  std::string take() { return json_.take(); }

 private:
  // Else a NaN and the text "NaN" would be one JSON, and so one fingerprint.
  static void check_value(const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      const FieldType type = field.descriptor->type();
      if ((type == FieldType::TYPE_DOUBLE &&
           !std::isfinite(std::bit_cast<double>(field.wire.scalar))) ||
          (type == FieldType::TYPE_ENUM && field.wire.scalar != 0))
        misfit("a google.protobuf.Value is NaN, infinite, or a null that is not 0");
    }
  }

  void members(const std::vector<Field>& fields, std::size_t level) {
    json_.add("{");
    bool is_first = true;
    for_each_field(fields, [&](Values of_one) {
      const pb::FieldDescriptor& field = *of_one[0].descriptor;
      if (!std::exchange(is_first, false)) json_.add(",");
      json_.add(field.is_extension() ? "\"[" + field.full_name() + "]\":"
                                     : "\"" + field.name() + "\":");
      member(of_one, level);
    });
    json_.add("}");
  }

  void member(Values values, std::size_t level) {
    const pb::FieldDescriptor& field = *values[0].descriptor;
    if (field.is_map()) return map(values, level);
    if (field.is_repeated()) return list(values, level);
    if (field.message_type() == nullptr) return value(field, values.back().wire, level);
    std::string joined;
    const std::string_view bytes = joined_bytes(values, joined);
    joined_ += joined.size();
    if (joined_ > max_joined_)
      misfit("it joins more than " + std::to_string(max_joined_) + " bytes of messages in parts");
    message(*field.message_type(), bytes, level + 1);
  }

  void list(Values values, std::size_t level) {
    const pb::FieldDescriptor& field = *values[0].descriptor;
    json_.add("[");
    bool is_first = true;
    const auto element = [&](const WireField& wire) {
      if (!std::exchange(is_first, false)) json_.add(",");
      value(field, wire, level);
    };
    for (const Field& one : values) {
      if (!one.is_packed()) {
        element(one.wire);
        continue;
      }
      const WireType type = wire_type_of(field);
      for (std::string_view rest = one.wire.bytes; !rest.empty();)
        element({.number = field.number(), .type = type, .scalar = take_scalar(rest, type)});
    }
    json_.add("]");
  }

  // Of several entries with one key the last one counts. Sorted by the keys' text.
  void map(Values values, std::size_t level) {
    const pb::Descriptor& entry = *values[0].descriptor->message_type();
    std::vector<std::pair<std::string, std::string_view>> entries;
    for (const Field& one : values) {
      std::string key = key_text(*entry.map_key(), fields_of(schema_, entry, one.wire.bytes));
      entries.emplace_back(std::move(key), one.wire.bytes);
    }
    std::ranges::stable_sort(entries, {}, &std::pair<std::string, std::string_view>::first);
    json_.add("{");
    bool is_first = true;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i + 1 < entries.size() && entries[i].first == entries[i + 1].first) continue;
      if (!std::exchange(is_first, false)) json_.add(",");
      json_.string(entries[i].first);
      json_.add(":");
      entry_value(*entry.map_value(), fields_of(schema_, entry, entries[i].second), level);
    }
    json_.add("}");
  }

  static std::string key_text(const pb::FieldDescriptor& key, const std::vector<Field>& fields) {
    WireField last;  // 0 or "", if it is not there
    for (const Field& field : fields)
      if (field.descriptor == &key) last = field.wire;
    if (key.type() == FieldType::TYPE_STRING) return std::string(last.bytes);
    JsonText text(32, kNoFit);
    number(text, key, last.scalar);
    return text.take();
  }

  void entry_value(const pb::FieldDescriptor& field, const std::vector<Field>& fields,
                   std::size_t level) {
    bool is_there = false;
    for_each_field(fields, [&](Values of_one) {
      if (of_one[0].descriptor != &field) return;
      is_there = true;
      member(of_one, level);
    });
    if (!is_there) nothing(field, level);
  }

  // The value of a field that is not there, if there must be one.
  void nothing(const pb::FieldDescriptor& field, std::size_t level) {
    if (field.is_map()) return json_.add("{}");
    if (field.is_repeated()) return json_.add("[]");
    if (field.message_type() != nullptr) return message(*field.message_type(), {}, level + 1);
    WireField wire{.number = field.number(), .type = wire_type_of(field)};
    if (field.type() == FieldType::TYPE_ENUM)
      wire.scalar = static_cast<std::uint64_t>(field.enum_type()->value(0)->number());
    value(field, wire, level);
  }

  // One that is not a list or a map.
  void value(const pb::FieldDescriptor& field, const WireField& wire, std::size_t level) {
    switch (field.type()) {
      case FieldType::TYPE_MESSAGE:
      case FieldType::TYPE_GROUP: return message(*field.message_type(), wire.bytes, level + 1);
      case FieldType::TYPE_STRING: return json_.string(wire.bytes);
      case FieldType::TYPE_BYTES: return json_.base64(wire.bytes);
      case FieldType::TYPE_ENUM: return enumeration(field, wire.scalar);
      default: return number(json_, field, wire.scalar);
    }
  }

  void enumeration(const pb::FieldDescriptor& field, std::uint64_t scalar) {
    const auto number = static_cast<int>(signed_of(field, scalar));
    const auto* const named = field.enum_type()->FindValueByNumber(number);
    if (named == nullptr) return json_.number(number);
    if (named->full_name() == "google.protobuf.NULL_VALUE") return json_.add("null");
    json_.string(named->name());
  }

  static void number(JsonText& text, const pb::FieldDescriptor& field, std::uint64_t scalar) {
    switch (field.type()) {
      case FieldType::TYPE_BOOL:
        return text.add(unsigned_of(field, scalar) == 1 ? "true" : "false");
      case FieldType::TYPE_FLOAT:
        return text.number(std::bit_cast<float>(static_cast<std::uint32_t>(scalar)));
      case FieldType::TYPE_DOUBLE: return text.number(std::bit_cast<double>(scalar));
      case FieldType::TYPE_UINT32:
      case FieldType::TYPE_UINT64:
      case FieldType::TYPE_FIXED32:
      case FieldType::TYPE_FIXED64: return text.number(unsigned_of(field, scalar));
      default: return text.number(signed_of(field, scalar));
    }
  }

  // Of seconds (1) and nanoseconds (2).
  template <class Text>
  void time(const std::vector<Field>& fields, const Text& text) {
    std::int64_t seconds = 0;
    std::int64_t nanos = 0;
    for (const Field& field : fields)
      (field.descriptor->number() == 1 ? seconds : nanos) =
          signed_of(*field.descriptor, field.wire.scalar);
    json_.string(text(seconds, nanos));
  }

  const Schema& schema_;
  const std::size_t max_joined_;
  std::size_t joined_ = 0;
  JsonText json_;
};

}  // namespace
}  // namespace protobuf

ProtobufDecoder::ProtobufDecoder(const SchemaText& schema)
    : schema_(std::make_unique<const protobuf::Schema>(schema)) {}

ProtobufDecoder::~ProtobufDecoder() = default;

std::string ProtobufDecoder::decode(const Framed& framed) const {
  protobuf::Writing writing(*schema_, framed.body.size());
  writing.message(schema_->message(framed.indexes), framed.body, 0);
  return writing.take();
}

std::string ProtobufDecoder::type(const Framed& framed) const {
  return schema_->message(framed.indexes).full_name();
}

}  // namespace hapax::payload
