#include "config/reader.hpp"

#include <algorithm>

#include "config/suggest.hpp"

namespace hapax::config {
namespace {

using nlohmann::json;

const json kEmptyObject = json::object();

// What stands in the file, short; a string as it is written, before expansion.
std::string found(const json& value) {
  constexpr std::size_t kLongest = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty array" : "an array";
  const std::string text = value.dump(-1, ' ', true);
  if (text.size() <= kLongest) return text;
  const std::size_t size = value.is_string() ? value.get_ref<const std::string&>().size() : 0;
  return "a " + std::string(size > 0 ? "string" : "number") + " of " +
         std::to_string(size > 0 ? size : text.size()) + " bytes";
}

}  // namespace

std::string member_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string format(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems)
    text += (problem.path.empty() ? "" : problem.path + ": ") + problem.message + "\n";
  return text;
}

void Reader::problem(std::string path, std::string message) {
  problems.push_back({std::move(path), std::move(message)});
}

void Reader::refuse(const Value& value, const std::string& allowed) {
  problem(value.path, "found " + found(*value.json) + "; allowed: " + allowed);
}

std::optional<std::string> Reader::text(const Value& value, const std::string& allowed) {
  if (!value.json->is_string()) {
    refuse(value, allowed);
    return std::nullopt;
  }
  auto result = expand(value.json->get_ref<const std::string&>(), environment_, warnings);
  if (const auto* error = std::get_if<NotExpanded>(&result)) {
    problem(value.path, error->why);
    return std::nullopt;
  }
  if (std::get<std::string>(result).find('\0') != std::string::npos) {
    problem(value.path, "holds a NUL byte; no setting can");
    return std::nullopt;
  }
  return std::get<std::string>(std::move(result));
}

std::string Reader::file_named_by(const Value& value) const {
  if (!value.json->is_string()) return "";
  return config::file_named_by(value.json->get_ref<const std::string&>(), environment_);
}

json Reader::expanded(const Value& value) {
  if (value.json->is_string()) return text(value, "a string").value_or("");
  if (!value.json->is_structured()) return *value.json;
  json result = value.json->is_array() ? json::array() : json::object();
  std::size_t index = 0;
  for (const auto& [name, member] : value.json->items()) {
    if (value.json->is_array())
      result.push_back(expanded({&member, value.path + "[" + std::to_string(index++) + "]"}));
    else
      result[name] = expanded({&member, member_path(value.path, name)});
  }
  return result;
}

std::vector<Value> Reader::elements(const Value& value, const std::string& allowed) {
  std::vector<Value> result;
  if (!value.json->is_array() || value.json->empty())
    refuse(value, allowed);
  else
    for (const json& element : *value.json)
      result.push_back({&element, value.path + "[" + std::to_string(result.size()) + "]"});
  return result;
}

Object::Object(Reader& reader, Value value)
    : reader_(reader), value_(std::move(value)), is_object_(value_.json->is_object()) {
  if (is_object_) return;
  reader_.refuse(value_, "an object");
  value_.json = &kEmptyObject;
}

std::optional<Value> Object::find(const std::string& name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.push_back(name);
  const auto member = members().find(name);
  if (member == members().end()) return std::nullopt;
  return Value{&*member, member_path(path(), name)};
}

void Object::section(const std::string& name, const std::function<void(Object&)>& read_members) {
  const auto value = find(name);
  Object object(reader_, value.value_or(Value{&kEmptyObject, member_path(path(), name)}));
  object.is_object_ = object.is_object_ && is_object_;
  read_members(object);
}

void Object::missing(const std::string& name, const std::string& what) {
  if (!is_object_) return;
  std::vector<std::string> present;
  for (const auto& [member, value] : members().items()) present.push_back(member);
  const std::string near = closest(name, present);
  reader_.problem(
      member_path(path(), name),
      "is missing: " + what + (near.empty() ? "" : "; is " + near + " meant to be it?"));
}

void Object::finish(const std::function<bool(const std::string&)>& is_other) {
  std::string known;
  for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
  for (const auto& [name, member] : members().items()) {
    if (is_other && is_other(name)) continue;
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string near = closest(name, known_);
    reader_.problem(member_path(path(), name),
                    "is unknown; " + (near.empty() ? "" : "did you mean " + near + "? ") +
                        "Known here: " + known);
  }
}

}  // namespace hapax::config
