#include "payload/protobuf/fields.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "payload/varint.hpp"

namespace hapax::payload::protobuf {
namespace {

namespace pb = google::protobuf;

using FieldType = pb::FieldDescriptor::Type;

Field checked(const Schema& schema, const pb::Descriptor& type, const WireField& wire) {
  const Field field{schema.field(type, wire.number), wire};
  if (field.descriptor == nullptr)
    misfit(type.full_name() + " has no field " + std::to_string(wire.number) +
           "; the producer must name the schema that it writes by");
  if (wire.type != wire_type_of(*field.descriptor) && !field.is_packed())
    misfit(field.descriptor->full_name() + " is written as another type");
  return field;
}

// Of the members of a oneof only the last one counts, with what comes after the others.
void keep_last_of_oneofs(std::vector<Field>& fields) {
  std::map<const pb::OneofDescriptor*, const pb::FieldDescriptor*> last;
  auto kept = fields.end();
  for (auto field = fields.end(); field != fields.begin();) {
    const Field one = *--field;
    if (const auto* const oneof = one.descriptor->real_containing_oneof()) {
      auto& member = last.try_emplace(oneof, one.descriptor).first->second;
      if (member != one.descriptor) member = nullptr;
      if (member == nullptr) continue;
    }
    *--kept = one;
  }
  fields.erase(fields.begin(), kept);
}

// To Protobuf a value of nothing is no value, unless the field has presence.
bool is_there(Values values) {
  const pb::FieldDescriptor& field = *values[0].descriptor;
  const auto holds = [](const Field& value) {
    return value.wire.type == WireType::bytes || value.wire.type == WireType::group
               ? !value.wire.bytes.empty()
               : value.wire.scalar != 0;
  };
  if (field.is_repeated())
    return std::ranges::any_of(
        values, [](const Field& value) { return !value.is_packed() || !value.wire.bytes.empty(); });
  return field.has_presence() || holds(values.back());
}

void require_all(const Schema& schema, const pb::Descriptor& type,
                 const std::vector<Field>& fields) {
  const auto* const required = schema.required(type);
  if (required == nullptr) return;
  for (const pb::FieldDescriptor* const field : *required)
    if (!std::ranges::binary_search(fields, field->number(), {},
                                    [](const Field& value) { return value.descriptor->number(); }))
      misfit("the required field " + field->full_name() + " is missing");
}

}  // namespace

WireType wire_type_of(const pb::FieldDescriptor& field) {
  switch (field.type()) {
    case FieldType::TYPE_DOUBLE:
    case FieldType::TYPE_FIXED64:
    case FieldType::TYPE_SFIXED64: return WireType::fixed64;
    case FieldType::TYPE_FLOAT:
    case FieldType::TYPE_FIXED32:
    case FieldType::TYPE_SFIXED32: return WireType::fixed32;
    case FieldType::TYPE_STRING:
    case FieldType::TYPE_BYTES:
    case FieldType::TYPE_MESSAGE: return WireType::bytes;
    case FieldType::TYPE_GROUP: return WireType::group;
    default: return WireType::varint;
  }
}

std::vector<Field> fields_of(const Schema& schema, const pb::Descriptor& type,
                             std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) fields.push_back(checked(schema, type, take_field(bytes)));
  if (type.real_oneof_decl_count() > 0) keep_last_of_oneofs(fields);
  std::ranges::stable_sort(fields, {},
                           [](const Field& field) { return field.descriptor->number(); });
  require_all(schema, type, fields);
  auto end = fields.begin();
  for_each_field(fields, [&](Values values) {
    if (is_there(values)) end = std::copy(values.begin(), values.end(), end);
  });
  fields.erase(end, fields.end());
  return fields;
}

std::int64_t signed_of(const pb::FieldDescriptor& field, std::uint64_t scalar) {
  auto value = static_cast<std::int64_t>(scalar);
  switch (field.type()) {
    case FieldType::TYPE_SFIXED32: return static_cast<std::int32_t>(scalar);
    case FieldType::TYPE_SINT64: return from_zigzag(scalar);
    case FieldType::TYPE_SINT32: value = from_zigzag(scalar); [[fallthrough]];
    case FieldType::TYPE_INT32:
    case FieldType::TYPE_ENUM:
      if (value < std::numeric_limits<std::int32_t>::min() ||
          value > std::numeric_limits<std::int32_t>::max())
        misfit(field.full_name() + " has a number of more than 32 bits");
      return value;
    default: return value;
  }
}

std::uint64_t unsigned_of(const pb::FieldDescriptor& field, std::uint64_t scalar) {
  const std::uint64_t most = field.type() == FieldType::TYPE_BOOL     ? 1
                             : field.type() == FieldType::TYPE_UINT32 ? 0xffff'ffff
                                                                      : ~std::uint64_t{0};
  if (scalar > most) misfit(field.full_name() + " has a number that is too large");
  return scalar;
}

std::string_view joined_bytes(Values values, std::string& joined) {
  if (values.size() == 1) return values[0].wire.bytes;
  for (const Field& value : values) joined += value.wire.bytes;
  return joined;
}

}  // namespace hapax::payload::protobuf
