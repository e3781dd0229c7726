#include "payload/schema_keywords.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "hapax/message.hpp"

namespace hapax::payload {
namespace {

using nlohmann::json;

// How a keyword's value is read. In place: its schemas are for the same value as the keyword's own.
enum class Keyword {
  plain,
  noted,
  schema,
  schema_in_place,
  list_in_place,
  map,
  definitions,
  items,
  dependencies
};

const std::map<std::string, Keyword>& keywords() {
  using enum Keyword;
  static const std::map<std::string, Keyword> kinds{
      {"type", plain},
      {"enum", plain},
      {"const", plain},
      {"minimum", plain},
      {"maximum", plain},
      {"exclusiveMinimum", plain},
      {"exclusiveMaximum", plain},
      {"multipleOf", plain},
      {"minLength", plain},
      {"maxLength", plain},
      {"pattern", plain},
      {"minItems", plain},
      {"maxItems", plain},
      {"uniqueItems", plain},
      {"required", plain},
      {"minProperties", plain},
      {"maxProperties", plain},
      {"$ref", plain},
      {"additionalProperties", schema},
      {"additionalItems", schema},
      {"contains", schema},
      {"propertyNames", schema},
      {"items", items},
      {"properties", map},
      {"definitions", definitions},
      {"$defs", definitions},
      {"dependencies", dependencies},
      {"allOf", list_in_place},
      {"anyOf", list_in_place},
      {"oneOf", list_in_place},
      {"not", schema_in_place},
      {"if", schema_in_place},
      {"then", schema_in_place},
      {"else", schema_in_place},
      {"$schema", noted},
      {"$id", noted},
      {"id", noted},
      {"$comment", noted},
      {"title", noted},
      {"description", noted},
      {"default", noted},
      {"examples", noted},
      {"deprecated", noted},
      {"readOnly", noted},
      {"writeOnly", noted},
      {"format", noted},
      {"contentEncoding", noted},
      {"contentMediaType", noted},
  };
  return kinds;
}

[[noreturn]] void refuse_schema(const std::string& at, const std::string& why) {
  throw std::runtime_error("at \"" + at + "\": " + why);
}

// What libstdc++ would match in another way than JavaScript does, whose patterns JSON Schema has.
// Null: nothing. A backslash that is escaped itself escapes nothing.
const char* matched_otherwise(const std::string& pattern) {
  constexpr const char* kBytes = "a pattern is matched byte by byte, so it must be ASCII";
  bool in_class = false;
  char before = ' ';  // outside of classes; ' ' for what is escaped
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    const char behind = std::exchange(before, c == '\\' || in_class ? ' ' : c);
    if (static_cast<unsigned char>(c) >= 0x80) return kBytes;
    if (c == '\\' && at + 1 < pattern.size()) {
      const char kind = pattern[++at];
      const std::size_t digits = kind == 'u' ? 4 : kind == 'x' ? 2 : 0;  // \u20ac and \xe9
      const std::string code = pattern.substr(at + 1, digits);
      if (digits > 0 && std::strtoul(code.c_str(), nullptr, 16) >= 0x80) return kBytes;
      if (kind == 'c') return "write a control character as \\x03, not as \\cC";
      continue;
    }
    if (in_class && c == '[' && std::string_view(":.=").find(pattern[at + 1]) != std::string::npos)
      return "JSON Schema has no classes such as [:alpha:]; write [A-Za-z]";
    if (!in_class && (c == '+' || c == '*') &&
        std::string_view("+*?}").find(behind) != std::string_view::npos)
      return "JSON Schema has no quantifier behind a quantifier, such as a++";
    in_class = c == '[' || (in_class && c != ']');
  }
  if (pattern.find("(?=") != std::string::npos || pattern.find("(?!") != std::string::npos)
    return "a lookahead takes a pass for each byte; write the pattern without it";
  return nullptr;
}

std::string below(const std::string& at, std::string name) {
  std::string escaped;
  for (const char c : name) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return at + "/" + escaped;
}

constexpr double kOfIntegers = 9223372036854775808.0;  // 2^63
constexpr double kExact = 9007199254740992.0;          // 2^53: below it a double has no neighbours

// Whether it holds a number that is equal to others of a payload.
bool has_large_number(const json& value, double limit) {
  if (value.is_structured())
    return std::any_of(value.begin(), value.end(),
                       [limit](const json& e) { return has_large_number(e, limit); });
  return value.is_number() && std::abs(value.get<double>()) >= limit &&
         (limit < kOfIntegers || value != std::numeric_limits<std::int64_t>::max());
}

class Walk {
 public:
  explicit Walk(CheckedSchema& into) : into_(into) {}

  // Recursion is bounded: the file was parsed with kMaxJsonDepth.
  void schema(json& node, const std::string& at) {
    std::vector<std::string>& in_place = in_place_[at];
    if (node.is_boolean()) return;
    if (!node.is_object()) refuse_schema(at, "a schema is an object, true or false");
    std::vector<std::string> noted;
    for (auto& [name, value] : node.items()) {
      const auto known = keywords().find(name);
      if (known == keywords().end()) refuse_schema(below(at, name), why_unknown(name));
      if (known->second == Keyword::noted) noted.push_back(name);
      keyword(known->second, name, value, at, in_place);
    }
    for (const std::string& name : noted) node.erase(name);
    if (node.contains("multipleOf") && node.value("type", json()) != "integer")
      refuse_schema(below(at, "multipleOf"),
                    "needs \"type\": \"integer\" beside it: a fraction would be cut off");
    const auto is_checked = [&](const auto& member) {
      return member.key() != "$ref" && member.key() != "definitions" && member.key() != "$defs";
    };
    bool has_more = false;
    for (const auto& member : node.items()) has_more |= is_checked(member);
    if (node.contains("$ref") && has_more)
      refuse_schema(at, "what stands beside \"$ref\" is not checked; put both into \"allOf\"");
  }

  // Every reference leads to a schema, no schema to itself for the same value, and none to itself
  // on two ways.
  void finish() const {
    std::set<std::string> done;
    for (const auto& [at, next] : in_place_) follow(at, {}, done);
    for (const auto& reference : in_place_) {
      const std::string& at = reference.first;  // clang 14 hands no structured binding to a lambda
      auto ways =
          std::ranges::count_if(reference.second, [&](const auto& to) { return leads(to, at); });
      for (const auto* const group : {&below_, &contained_})
        if (const auto found = group->find(at); found != group->end())
          ways += std::ranges::any_of(found->second, [&](const auto& to) { return leads(to, at); });
      if (ways > 1)
        refuse_schema(at,
                      "the schema refers to itself on two ways, so the time would double with each "
                      "level of a payload. Let one branch refer back at most");
    }
  }

 private:
  static std::string why_unknown(const std::string& name) {
    if (name == "patternProperties")
      return "\"patternProperties\" cannot be checked: matching a hostile name could take for "
             "ever. "
             "Use \"properties\", or \"propertyNames\" with \"pattern\"";
    return "the keyword is not known, so it would not be checked. Known is draft 7 of JSON Schema "
           "without \"patternProperties\"; fix the name, or leave it out";
  }

  // `in_place`: of the schema at `parent`, whose keyword it is.
  void keyword(Keyword kind, const std::string& name, json& value, const std::string& parent,
               std::vector<std::string>& in_place) {
    const std::string at = below(parent, name);
    const auto child = [&](std::vector<std::string>& group, json& node, const std::string& its) {
      group.push_back(its);
      schema(node, its);
    };
    std::vector<std::string>& direct = name == "contains" ? contained_[parent] : below_[parent];
    switch (kind) {
      case Keyword::noted: return dialect(name, value, at);
      case Keyword::plain: return plain(name, value, at, in_place);
      case Keyword::schema: return child(direct, value, at);
      case Keyword::schema_in_place: return child(in_place, value, at);
      case Keyword::items:
        if (!value.is_array()) return child(direct, value, at);
        for (std::size_t i = 0; i < value.size(); ++i)
          child(direct, value[i], below(at, std::to_string(i)));
        return;
      case Keyword::list_in_place:
        if (!value.is_array() || value.empty()) refuse_schema(at, "must be an array of schemas");
        for (std::size_t i = 0; i < value.size(); ++i)
          child(in_place, value[i], below(at, std::to_string(i)));
        return;
      case Keyword::definitions:
      case Keyword::map:
      case Keyword::dependencies:
        if (!value.is_object()) refuse_schema(at, "must be an object");
        for (auto& [member, its] : value.items())
          if (kind == Keyword::definitions)
            schema(its, below(at, member));
          else if (kind == Keyword::map)
            child(direct, its, below(at, member));
          else if (!its.is_array())
            child(in_place, its, below(at, member));
    }
  }

  static void dialect(const std::string& name, const json& value, const std::string& at) {
    if (name != "$schema" || !value.is_string()) return;
    for (const char* const old : {"draft-03", "draft-04"})
      if (value.get_ref<const std::string&>().find(old) != std::string::npos)
        refuse_schema(at, std::string(old) + " of JSON Schema is not known; write it as draft-07");
  }

  void plain(const std::string& name, json& value, const std::string& at,
             std::vector<std::string>& in_place) {
    if (has_large_number(value, kOfIntegers))
      refuse_schema(at, "a number of a schema must lie between -2^63 and 2^63 - 1");
    if ((name == "enum" || name == "const") && has_large_number(value, kExact))
      refuse_schema(at,
                    "a number must lie between -2^53 and 2^53: it is compared as a double, "
                    "which also stands for its neighbours");
    make_comparable(value);
    if (name == "multipleOf" && !(value.is_number_integer() && value > 0))
      refuse_schema(at,
                    "must be a whole number above 0: fractions are compared as doubles, and 19.99 "
                    "would be no multiple of 0.01");
    if (name == "uniqueItems") {
      if (!value.is_boolean()) refuse_schema(at, "must be true or false");
      into_.compares_elements |= value == true;
    }
    if (name != "pattern" && name != "$ref") return;
    if (!value.is_string()) refuse_schema(at, "must be a string");
    const std::string& text = value.get_ref<const std::string&>();
    if (name == "pattern") {
      if (const char* const why = matched_otherwise(text)) refuse_schema(at, why);
      into_.patterns.push_back(text);
    } else if (text != "#" && !(text.starts_with("#/") && text.find('%') == std::string::npos)) {
      refuse_schema(at, "a reference must lead into this file, such as \"#/definitions/amount\"");
    } else {
      in_place.push_back(text.substr(1));
    }
  }

  void follow(const std::string& at, std::set<std::string> above,
              std::set<std::string>& done) const {
    if (done.contains(at)) return;
    if (!above.insert(at).second)
      refuse_schema(at,
                    "the schema refers to itself for the same value, so checking would not end");
    for (const std::string& next : in_place_.at(at)) {
      if (!in_place_.contains(next))
        refuse_schema(at, "\"#" + next + "\" is no schema of this file");
      follow(next, above, done);
    }
    done.insert(at);
  }

  // Whether checking at `from` comes to the schema at `to`.
  bool leads(const std::string& from, const std::string& to) const {
    std::set<std::string> seen;
    std::vector<std::string> next{from};
    while (!next.empty()) {
      const std::string at = next.back();
      next.pop_back();
      if (at == to) return true;
      if (!seen.insert(at).second) continue;
      for (const auto* const group : {&in_place_, &below_, &contained_})
        if (const auto found = group->find(at); found != group->end())
          next.insert(next.end(), found->second.begin(), found->second.end());
    }
    return false;
  }

  CheckedSchema& into_;
  // By JSON pointer of a schema: the schemas that are for the same value, …
  std::map<std::string, std::vector<std::string>> in_place_;
  std::map<std::string, std::vector<std::string>> below_;      // … for members and elements,
  std::map<std::string, std::vector<std::string>> contained_;  // … and for elements once more.
};

}  // namespace

void make_comparable(json& value) {
  if (value.is_structured()) {
    for (json& element : value) make_comparable(element);
  } else if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    value = static_cast<std::int64_t>(
        std::min(number, std::uint64_t{std::numeric_limits<std::int64_t>::max()}));
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    using Limits = std::numeric_limits<std::int64_t>;
    if (std::trunc(number) == number)
      value = number >= kOfIntegers   ? Limits::max()
              : number < -kOfIntegers ? Limits::min()
                                      : static_cast<std::int64_t>(number);
  }
}

CheckedSchema check_keywords(json schema) {
  CheckedSchema checked;
  Walk walk(checked);
  walk.schema(schema, "");
  walk.finish();
  checked.schema = std::move(schema);
  return checked;
}

}  // namespace hapax::payload
