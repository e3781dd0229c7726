// How a route's messages get their names: the sources of the key, the tenant, the fingerprint.
#include <algorithm>

#include "config/rules.hpp"
#include "config/sections.hpp"
#include "key/json_pointer.hpp"
#include "key/key_source.hpp"

namespace hapax::config {
namespace {

using key::FingerprintRule;
using key::Source;

const std::string kSourceObjects =
    R"({"header": "idempotency-key"}, {"json": "/id"} (an array of names: all of them joined))";
const std::string kSources = R"("record_key", "coordinates", "content_hash", )" + kSourceObjects;
const std::string kPosition = "position";
const std::string kKeys = '"' + kPosition + "\", " + kSources;
const std::string kTenantSources = R"("record_key", {"header": "tenant"}, {"json": "/tenant"})";

// A header's name as it is compared.
std::string header_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), key::lower_case);
  return name;
}

struct Name {
  Source::Kind kind;

  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    if (kind == Source::Kind::header) return Text{"the name of a header", 200, true}(reader, value);
    const auto pointer = reader.text(value, "a JSON pointer such as \"/id\"");
    if (!pointer) return std::nullopt;
    const auto error = key::json_pointer_error(*pointer);
    if (!error) return pointer;
    reader.refuse(value, "a JSON pointer such as \"/id\"; " + *error);
    return std::nullopt;
  }
};

// One name, or an array of names, no two of them equal.
struct Names {
  Source::Kind kind;

  std::optional<std::vector<std::string>> operator()(Reader& reader, const Value& value) const {
    const std::string allowed = kind == Source::Kind::header
                                    ? "the name of a header, or an array of names"
                                    : "a JSON pointer such as \"/id\", or an array of them";
    if (!value.json->is_string() && !value.json->is_array()) {
      reader.refuse(value, allowed);
      return std::nullopt;
    }
    const bool one = value.json->is_string();
    std::vector<std::string> names, compared;
    for (const Value& element : one ? std::vector{value} : reader.elements(value, allowed)) {
      const auto name = Name{kind}(reader, element);
      if (!name) continue;
      names.push_back(*name);
      compared.push_back(kind == Source::Kind::header ? header_name(*name) : *name);
      if (std::count(compared.begin(), compared.end(), compared.back()) > 1)
        reader.problem(element.path, "comes twice in this key; remove one");
    }
    return names;
  }
};

std::optional<Source> read_object_source(Reader& reader, const Value& value,
                                         const std::string& allowed) {
  Object object(reader, value);
  Source source;
  const bool header = object.read("header", source.names, Names{Source::Kind::header});
  const bool json = object.read("json", source.names, Names{Source::Kind::json});
  source.kind = json ? Source::Kind::json : Source::Kind::header;
  const bool unquote = object.read("unquote", source.unquote, Flag{});
  object.finish();
  if (header == json) {
    reader.problem(value.path, (header ? "holds both header and json" : "holds no source") +
                                   std::string("; allowed: ") + allowed);
    return std::nullopt;
  }
  if (json && unquote)
    reader.problem(member_path(value.path, "unquote"), "is for headers only; remove it");
  return source;
}

struct KeySource {
  bool in_array;

  std::optional<Source> operator()(Reader& reader, const Value& value) const {
    if (value.json->is_object())
      return read_object_source(reader, value, in_array ? kSources : kKeys);
    using Kind = Source::Kind;
    if (in_array && *value.json == kPosition) {
      reader.problem(value.path, R"("position" stands alone: write "key": "position")");
      return std::nullopt;
    }
    Choice<Kind> words{{{"record_key", Kind::record_key},
                        {"coordinates", Kind::coordinates},
                        {"content_hash", Kind::content_hash}},
                       ", " + kSourceObjects};
    if (!in_array) words.words.insert(words.words.begin(), {kPosition, Kind::position});
    const auto kind = words(reader, value);
    return kind ? std::optional(Source{*kind, {}, false}) : std::nullopt;
  }
};

// A tenant groups messages, so what differs for each message is none.
struct TenantSource {
  std::optional<Source> operator()(Reader& reader, const Value& value) const {
    if (value.json->is_object()) return read_object_source(reader, value, kTenantSources);
    const auto text = reader.text(value, kTenantSources);
    if (!text) return std::nullopt;
    if (*text == "record_key") return Source{Source::Kind::record_key, {}, false};
    reader.refuse(value, kTenantSources);
    return std::nullopt;
  }
};

// "position", one source, or an array of sources in the order in which they are tried.
struct KeySources {
  std::optional<std::vector<Source>> operator()(Reader& reader, const Value& value) const {
    const bool array = value.json->is_array();
    std::vector<Source> sources;
    for (const Value& one : array ? reader.elements(value, kSources) : std::vector{value}) {
      const auto source = KeySource{array}(reader, one);
      if (!source) continue;
      if (!sources.empty() && sources.back().kind == Source::Kind::coordinates)
        reader.problem(one.path, "is never tried: coordinates are always there; put them last");
      else if (std::find(sources.begin(), sources.end(), *source) != sources.end())
        reader.problem(one.path, "comes twice; remove one");
      sources.push_back(*source);
    }
    return sources;
  }
};

struct Fingerprint {
  std::optional<FingerprintRule> operator()(Reader& reader, const Value& value) const {
    using Kind = FingerprintRule::Kind;
    if (!value.json->is_object()) {
      const Choice<Kind> words{{{"payload", Kind::payload}, {"json", Kind::json}},
                               R"(, {"json_without": ["/sent_at"]})"};
      const auto kind = words(reader, value);
      return kind ? std::optional(FingerprintRule{*kind, {}}) : std::nullopt;
    }
    FingerprintRule rule{Kind::json_without, {}};
    Object object(reader, value);
    object.require("json_without", rule.without, Names{Source::Kind::json},
                   "JSON pointers to what is left out, such as [\"/sent_at\"]");
    object.finish();
    std::sort(rule.without.begin(), rule.without.end());
    if (!rule.without.empty() && rule.without[0].empty()) {
      reader.problem(member_path(value.path, "json_without"),
                     "holds \"\", which is the whole document; nothing would be left to compare");
    }
    return rule;
  }
};

// What a route remembers of a message beside its offset, which is nothing.
void refuse_beside_position(Object& route) {
  for (const char* const member :
       {"missing_key", "fingerprint", "tenant", "max_result_bytes", "outside"})
    if (route.find(member))
      route.reader().problem(member_path(route.path(), member),
                             "is not for a route with \"key\": \"position\"; leave it out");
}

}  // namespace

void read_key_spec(Object& route, const std::string& handler, key::KeySpec& spec) {
  using key::MissingKey;
  using key::Tombstone;
  constexpr std::size_t kLongestScope = 200;  // it stands in every row of the key's index
  spec.scope = handler;
  route.read("scope", spec.scope, Text{"the name of the operation's consumer", kLongestScope});
  route.read("tenant", spec.tenant, TenantSource{});
  route.require("key", spec.sources, KeySources{},
                "the source of a message's idempotency key; allowed: " + kKeys +
                    ", or an array of these, tried in order");
  route.read("missing_key", spec.missing_key,
             Choice<MissingKey>{
                 {{"reject", MissingKey::reject}, {"coordinates", MissingKey::coordinates}}});
  route.read("tombstone", spec.tombstone,
             Choice<Tombstone>{{{"reject", Tombstone::reject},
                                {"skip", Tombstone::skip},
                                {"handle", Tombstone::handle}}});
  route.read("fingerprint", spec.fingerprint, Fingerprint{});
  if (key::is_by_position(spec)) refuse_beside_position(route);
}

}  // namespace hapax::config
