#include "payload/avro_schema.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hapax/message.hpp"

namespace hapax::payload {
namespace {

using nlohmann::json;
using Kind = AvroType::Kind;

constexpr int kMaxDepth = 100;               // of types in types, as they are written
constexpr std::size_t kMaxTypes = 100'000;   // in one schema with its references
constexpr std::int64_t kMaxScale = 1'000;    // digits behind the point
constexpr std::int64_t kMaxFixed = 1 << 30;  // bytes

const std::map<std::string, Kind>& primitives() {
  static const std::map<std::string, Kind> kinds{
      {"null", Kind::null},   {"boolean", Kind::boolean}, {"int", Kind::int32},
      {"long", Kind::int64},  {"float", Kind::float32},   {"double", Kind::float64},
      {"bytes", Kind::bytes}, {"string", Kind::string},
  };
  return kinds;
}

[[noreturn]] void not_avro(const std::string& why) {
  throw NotDecodable("the schema is no Avro schema: " + why);
}

std::string text_of(const json& node, const char* member) {
  const auto found = node.find(member);
  if (found == node.end() || !found->is_string())
    not_avro(std::string("a type has no \"") + member + "\"");
  return found->get<std::string>();
}

const json& member_of(const json& node, const char* member) {
  const auto found = node.find(member);
  if (found == node.end()) not_avro(std::string("a type has no \"") + member + "\"");
  return *found;
}

std::int64_t number_of(const json& node, const char* member, std::int64_t largest) {
  const json& number = member_of(node, member);
  if (!number.is_number_integer() || number < 0 || number > largest)
    not_avro(std::string("\"") + member + "\" must be a number of 0 to " + std::to_string(largest));
  return number.get<std::int64_t>();
}

std::string full_name(const std::string& name, const std::string& space) {
  const bool is_full = space.empty() || name.find('.') != std::string::npos;
  return is_full ? name : space + "." + name;
}

std::string space_of(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// Only of bytes and fixed is a logical type more than a hint: a handler cannot see the scale.
void read_decimal(const json& node, AvroType& type) {
  const auto logical = node.find("logicalType");
  if (logical == node.end() || *logical != "decimal") return;
  type.is_decimal = true;
  if (node.contains("scale")) type.scale = static_cast<int>(number_of(node, "scale", kMaxScale));
}

// A field's name or a symbol, as JSON.
std::string quoted(const json& name) {
  if (!name.is_string() || name.get_ref<const std::string&>().empty())
    not_avro("a name must be a string that is not empty");
  return name.dump();
}

void names_differ(std::vector<std::string> names, const std::string& where) {
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) not_avro(*twice + " comes twice in " + where);
}

json parse(const std::string& text) {
  Message::Parts parts;
  parts.payload = text;
  // Older tools write the schema "string" without quotes.
  if (primitives().contains(text)) return text;
  try {
    return Message(parts).json();  // its depth is bounded
  } catch (const BadPayload&) {
    not_avro("it is not JSON");
  }
}

}  // namespace

AvroSchema::AvroSchema(const SchemaText& schema) {
  for (const SchemaText::Reference& reference : schema.references)
    read(parse(reference.text), "", 0);
  root_ = read(parse(schema.text), "", 0);
}

AvroType& AvroSchema::add(Kind kind, std::string name) {
  if (types_.size() >= kMaxTypes)
    not_avro("it has more than " + std::to_string(kMaxTypes) + " types");
  AvroType& type = types_.emplace_back();
  type.kind = kind;
  type.name = std::move(name);
  return type;
}

const AvroType* AvroSchema::find(const std::string& name, const std::string& space) const {
  for (const std::string& full : {full_name(name, space), name})
    if (const auto found = named_.find(full); found != named_.end()) return found->second;
  not_avro("the type \"" + name + "\" is not declared");
}

const AvroType* AvroSchema::read(const json& node, const std::string& space, int depth) {
  if (depth > kMaxDepth)
    not_avro("types nest deeper than " + std::to_string(kMaxDepth) + " levels");
  if (node.is_array()) return read_union(node, space, depth);
  if (node.is_string()) {
    const auto& name = node.get_ref<const std::string&>();
    const auto primitive = primitives().find(name);
    return primitive == primitives().end() ? find(name, space) : &add(primitive->second, name);
  }
  if (!node.is_object()) not_avro("a type must be a string, an array or an object");
  const json& kind = member_of(node, "type");
  if (!kind.is_string()) return read(kind, space, depth + 1);
  const auto& name = kind.get_ref<const std::string&>();
  if (name == "array" || name == "map") {
    AvroType& type = add(name == "array" ? Kind::array : Kind::map, name);
    type.parts = {read(member_of(node, name == "array" ? "items" : "values"), space, depth + 1)};
    return &type;
  }
  if (name == "record" || name == "error" || name == "enum" || name == "fixed")
    return read_named(node, space, depth);
  const auto primitive = primitives().find(name);
  if (primitive == primitives().end()) return find(name, space);
  AvroType& type = add(primitive->second, name);
  if (type.kind == Kind::bytes) read_decimal(node, type);
  return &type;
}

const AvroType* AvroSchema::read_named(const json& node, const std::string& space, int depth) {
  const std::string kind = text_of(node, "type");
  const std::string own_space = node.contains("namespace") ? text_of(node, "namespace") : space;
  const std::string name = full_name(text_of(node, "name"), own_space);
  AvroType& type = add(
      kind == "enum" ? Kind::enumeration : (kind == "fixed" ? Kind::fixed : Kind::record), name);
  // Before its fields, which may name it.
  if (!named_.try_emplace(name, &type).second) not_avro("\"" + name + "\" is declared twice");
  if (kind == "fixed") {
    type.size = static_cast<std::size_t>(number_of(node, "size", kMaxFixed));
    read_decimal(node, type);
  } else if (kind == "enum") {
    const json& symbols = member_of(node, "symbols");
    if (!symbols.is_array()) not_avro("the symbols of an enum must be an array");
    for (const json& symbol : symbols) type.names.push_back(quoted(symbol));
    names_differ(type.names, name);
  } else {
    read_record(node, type, space_of(name), depth);
  }
  return &type;
}

void AvroSchema::read_record(const json& node, AvroType& type, const std::string& space,
                             int depth) {
  const json& fields = member_of(node, "fields");
  if (!fields.is_array()) not_avro("the fields of a record must be an array");
  for (const json& field : fields) {
    if (!field.is_object()) not_avro("a field must be an object");
    type.names.push_back(quoted(member_of(field, "name")));
    type.parts.push_back(read(member_of(field, "type"), space, depth + 1));
  }
  names_differ(type.names, type.name);
}

const AvroType* AvroSchema::read_union(const json& node, const std::string& space, int depth) {
  AvroType& type = add(Kind::choice, "union");
  for (const json& branch : node) {
    const AvroType* const read_branch = read(branch, space, depth + 1);
    if (read_branch->kind == Kind::choice) not_avro("a union stands directly in a union");
    type.parts.push_back(read_branch);
  }
  std::vector<std::string> names;
  for (const AvroType* const branch : type.parts) names.push_back(branch->name);
  names_differ(names, "a union");
  type.is_named = std::ranges::count_if(
                      type.parts, [](const AvroType* b) { return b->kind != Kind::null; }) > 1;
  return &type;
}

}  // namespace hapax::payload
