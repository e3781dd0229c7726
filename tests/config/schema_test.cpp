// Holds hapax.schema.json and the pages of the settings against the loaders of both files, in both
// directions: names, required members, defaults, words, bounds. So an editor never contradicts
// hapax.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <set>
#include <tuple>

#include "config/gate.hpp"
#include "sample.hpp"

namespace hapax::config {
namespace {

using nlohmann::json;
using Words = std::set<std::string>;

const json& schema() {
  static const json document = json::parse(source_file("src/config/hapax.schema.json"));
  return document;
}

// One schema inside the schema, and the place in a document that it describes.
struct Place {
  json schema;
  json::json_pointer pointer;
  std::string path;   // as problems name it
  std::string row;    // as docs/configuration.md names it: routes[].topic
  bool leaf = false;  // a setting, not a section
  bool required = false;
};

json resolved(json node) {
  if (!node.contains("$ref")) return node;
  json target = schema().at(json::json_pointer(node["$ref"].get<std::string>().substr(1)));
  target.update(node);  // what stands beside the $ref is about this use of it
  target.erase("$ref");
  return target;
}

void walk(const Place& place, const std::function<void(const Place&)>& visit) {
  visit(place);
  const json& node = place.schema;
  for (const auto& alternative : node.value("anyOf", json::array())) {
    Place same = place;
    same.leaf = false;
    same.schema = resolved(alternative);
    if (same.schema.contains("properties") || same.schema.contains("items")) walk(same, visit);
  }
  const json required = node.value("required", json::array());
  const json properties = node.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) {
    const json member = resolved(property);
    const bool must = std::find(required.begin(), required.end(), json(name)) != required.end();
    const bool leaf = !member.contains("properties") && !member.contains("items");
    if (name != "$schema")
      walk({member, place.pointer / name, place.path.empty() ? name : place.path + "." + name,
            place.row.empty() ? name : place.row + "." + name, leaf, must},
           visit);
  }
  if (node.contains("items"))
    walk({resolved(node["items"]), place.pointer / 0, place.path + "[0]", place.row + "[]"}, visit);
}

// A worker's file or a gate's.
struct Kind {
  const char* name;  // of its schema
  json (*base)(const Place&);
  std::vector<Problem> (*problems)(const json& document);
  bool (*same)(const json& one, const json& other);  // both are right, and mean the same
};

std::vector<Place> places(const Kind& kind) {
  std::vector<Place> result;
  walk({schema().at("$defs").at(kind.name), json::json_pointer(), "", ""},
       [&](const Place& place) { result.push_back(place); });
  return result;
}

// The settings: inside a source or a fingerprint there are none of their own.
std::vector<Place> settings(const Kind& kind) {
  std::vector<Place> result;
  const std::regex inside("routes\\[\\]\\.(key|tenant|fingerprint).+");
  for (const Place& place : places(kind))
    if (place.leaf && !std::regex_match(place.row, inside)) result.push_back(place);
  return result;
}

// The minimal document, with what the section of `place` requires.
json base(const Place& place) {
  json document = minimal();
  if (place.row.starts_with("routes[].outside."))
    document["routes"][0]["outside"] = place.row.ends_with(".remembers")
                                           ? json{{"repeat", "idempotent"}, {"remembers", "1h"}}
                                           : json{{"repeat", "never"}};
  if (place.row.starts_with("routes[].payload.registry"))
    document["routes"][0]["payload"] = {
        {"format", "avro"},
        {"registry", {{"url", "https://registry"}, {"user", "ann"}, {"password", "pw"}}}};
  return document;
}

const std::string kKeyOfOperations(128, 'a');

json base_of_gate(const Place& place) {
  json document = {{"gate", {{"callers", {{"tokens", "ann " + std::string(64, 'b')}}}}},
                   {"postgres", {{"url", "postgresql:///payments"}}},
                   {"routes", {{{"path", "/payments"}, {"handler", "book"}}}}};
  const auto is_in = [&](const char* section) { return place.row.starts_with(section); };
  if (is_in("gate.tls")) document["gate"]["tls"] = {{"certificate", "a"}, {"key", "b"}};
  if (is_in("gate.callers.proxy"))
    document["gate"]["callers"]["proxy"] = {{"addresses", {"10.0.0.7"}}, {"header", "x-tenant"}};
  if (is_in("kafka") || is_in("publish"))
    document["kafka"] = {{"bootstrap.servers", "kafka:9092"}, {"group.id", "payments"}};
  if (is_in("routes[].accept")) {
    document["kafka"] = {{"bootstrap.servers", "kafka:9092"}, {"group.id", "payments"}};
    document["gate"]["operations"]["key"] = kKeyOfOperations;
    document["routes"] = {{{"path", "/payments"}, {"accept", {{"topic", "t"}, {"scope", "s"}}}}};
  }
  return document;
}

std::string problem_at(const std::vector<Problem>& problems, const std::string& path) {
  return problem_at(Loaded{{}, problems}, path);
}

json changed(const Kind& kind, const Place& place, const json& value) {
  json document = kind.base(place);
  if (place.pointer.empty()) return value;
  json& parent = document[place.pointer.parent_pointer()];
  if (place.path.ends_with("[0]") && !parent.is_array()) parent = json::array();
  if (!place.path.ends_with("[0]") && !parent.is_object()) parent = json::object();
  document[place.pointer] = value;
  return document;
}

Words quoted_words(const std::string& text) {
  Words words;
  static const std::regex word("\"([A-Za-z_]+)\"(?!:)");
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it)
    words.insert((*it)[1]);
  return words;
}

bool same(const Config& a, const Config& b) {
  const auto fields = [](const Route& r) {
    return std::tie(r.topic, r.handler, r.plugin, r.dead_letter_topic, r.retry, r.retention,
                    r.options, r.max_result_bytes, r.batch, r.breaker, r.key.scope, r.key.sources,
                    r.key.tenant, r.key.missing_key, r.key.tombstone, r.key.fingerprint, r.outside,
                    r.tables, r.payload);
  };
  return a.kafka == b.kafka && a.postgres == b.postgres && a.worker == b.worker &&
         a.admin == b.admin && a.traces == b.traces && a.log == b.log && a.publish == b.publish &&
         a.console == b.console && a.routes.size() == b.routes.size() &&
         std::equal(a.routes.begin(), a.routes.end(), b.routes.begin(),
                    [&](const Route& x, const Route& y) { return fields(x) == fields(y); });
}

LoadedGate load_gate_of(const json& document) {
  return load_gate_text(document.dump(), environment({}));
}

bool same_gates(const GateConfig& a, const GateConfig& b) {
  const auto fields = [](const Gate& g) {
    return std::tie(g.listen, g.name, g.scope, g.retention, g.lanes, g.queue, g.wait,
                    g.shutdown_timeout, g.handler_timeout, g.rules, g.limits, g.tls.certificate,
                    g.tls.key, g.tls.client_ca, g.callers.header, g.operations_key);
  };
  const auto more = [](const Gate& g) {
    const GateRoute& route = g.routes.at(0);
    const GateAccept accept = route.accept.value_or(GateAccept());
    return std::tuple(g.callers.tokens.at(0).tenant, g.callers.proxies.size(), route.path,
                      route.methods, route.tenants, accept.topic, accept.scope, accept.key_pointer,
                      accept.key_header);
  };
  return same(a.base, b.base) && fields(a.gate) == fields(b.gate) && more(a.gate) == more(b.gate);
}

const Kind kWorkerFile{"worker_file", base,
                       [](const json& document) { return load(document).problems; },
                       [](const json& one, const json& other) {
                         const Loaded a = load(one), b = load(other);
                         return a.config && b.config && same(*a.config, *b.config);
                       }};
const Kind kGateFile{"gate_file", base_of_gate,
                     [](const json& document) { return load_gate_of(document).problems; },
                     [](const json& one, const json& other) {
                       const LoadedGate a = load_gate_of(one), b = load_gate_of(other);
                       return a.config && b.config && same_gates(*a.config, *b.config);
                     }};

class Schema : public testing::TestWithParam<Kind> {
 protected:
  const Kind& kind = GetParam();

  std::string refusal(const Place& place, const json& value) const {
    return problem_at(kind.problems(changed(kind, place, value)), place.path);
  }
};

INSTANTIATE_TEST_SUITE_P(Of, Schema, testing::Values(kWorkerFile, kGateFile), [](const auto& kind) {
  return std::string(kind.index == 0 ? "Worker" : "Gate");
});

TEST_P(Schema, KnowsTheNamesThatTheLoaderKnows) {
  std::size_t objects = 0;
  for (const Place& place : places(kind)) {
    if (!place.schema.contains("properties")) continue;
    ++objects;
    EXPECT_EQ(place.schema.at("additionalProperties"), false) << place.path;
    Words in_schema;
    for (const auto& [name, property] : place.schema["properties"].items()) in_schema.insert(name);

    json document = changed(kind, place, {{"not_a_setting", 1}});
    if (place.path.empty() && kind.name == kGateFile.name) document["kafka"] = json::object();
    const std::string path = (place.path.empty() ? "" : place.path + ".") + "not_a_setting";
    const std::string message = problem_at(kind.problems(document), path);
    const auto list = message.find("Known here: ");
    ASSERT_NE(list, std::string::npos) << path << ": " << message;
    Words in_loader;
    static const std::regex name("[^, ]+");
    const std::string known = message.substr(list + 12);
    for (std::sregex_iterator it(known.begin(), known.end(), name), end; it != end; ++it)
      in_loader.insert(it->str());
    EXPECT_EQ(in_schema, in_loader) << place.path;
  }
  EXPECT_GE(objects, 12u);  // what finds nothing compares nothing
}

TEST_P(Schema, RequiresWhatTheLoaderRequires) {
  for (const Place& place : settings(kind)) {
    // Instead of it there may be `accept`.
    if (place.row == "routes[].handler" && kind.name == kGateFile.name) continue;
    json document = kind.base(place);
    if (document.contains(place.pointer))
      document[place.pointer.parent_pointer()].erase(place.pointer.back());
    const std::string message = problem_at(kind.problems(document), place.path);
    EXPECT_EQ(place.required, message.starts_with("is missing: ")) << place.path;
  }
}

TEST_P(Schema, NamesTheDefaultsOfTheLoader) {
  for (const Place& place : settings(kind)) {
    const json least = kind.base(place);
    ASSERT_TRUE(kind.problems(least).empty()) << place.path << format(kind.problems(least));
    const json examples = place.schema.at("examples");
    ASSERT_FALSE(examples.empty()) << place.path;
    for (const auto& example : examples) {
      const json with_example = changed(kind, place, example);
      ASSERT_TRUE(kind.problems(with_example).empty()) << format(kind.problems(with_example));
      if (!place.required) {
        EXPECT_FALSE(kind.same(with_example, least)) << place.path << " is not read";
      }
    }
    if (!place.schema.contains("default")) continue;
    EXPECT_TRUE(kind.same(changed(kind, place, place.schema["default"]), least)) << place.path;
  }
}

TEST_P(Schema, AllowsTheWordsAndBoundsOfTheLoader) {
  std::size_t words = 0, bounds = 0;
  for (const Place& place : places(kind)) {
    for (const auto& alternative : place.schema.value("anyOf", json::array())) {
      if (alternative.contains("enum") && place.row != "routes[].tenant") {
        ++words;
        EXPECT_EQ(alternative["enum"].get<Words>(), quoted_words(refusal(place, "no such word")))
            << place.path;
        for (const auto& word : alternative["enum"]) EXPECT_EQ(refusal(place, word), "") << word;
      }
      if (alternative.contains("maximum") && place.schema.contains("default")) {
        ++bounds;
        const auto min = alternative["minimum"].get<std::int64_t>();
        const auto max = alternative["maximum"].get<std::int64_t>();
        EXPECT_EQ(refusal(place, min) + refusal(place, max), "") << place.path;
        EXPECT_FALSE(refusal(place, min - 1).empty() || refusal(place, max + 1).empty())
            << place.path;
      }
    }
  }
  EXPECT_GE(words, 4u);
  EXPECT_GE(bounds, 3u);
}

// The rows "| `setting` | default | allowed | effect |".
std::map<std::string, std::pair<std::string, std::string>> documented() {
  std::map<std::string, std::pair<std::string, std::string>> rows;
  const std::string page = source_file("docs/configuration.md");
  const std::regex row(
      R"(\n\| `((?:kafka|postgres|worker|routes\[\]|admin|traces|log)\.[^`]+|publish\.transactions)` )"
      R"(\| ([^|]+) \| ([^|]+) \| [^|]+ \|(?=\n))");
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it)
    EXPECT_TRUE(rows.try_emplace((*it)[1], (*it)[2], (*it)[3]).second) << (*it)[1] << " twice";
  return rows;
}

TEST(Documentation, ListsEverySettingWithItsDefault) {
  auto rows = documented();
  for (const Place& place : settings(kWorkerFile)) {
    ASSERT_TRUE(rows.contains(place.row)) << place.row << " is not in docs/configuration.md";
    const auto& [written_default, allowed] = rows[place.row];
    const auto value = place.schema.find("default");
    EXPECT_EQ(place.required, written_default == "required") << place.row;
    EXPECT_EQ(value != place.schema.end(), written_default.starts_with('`')) << place.row;
    if (value != place.schema.end()) {
      EXPECT_EQ(written_default, "`" + value->dump() + "`") << place.row;
    }

    // Durations and sizes: the bounds that the loader names.
    const std::string refusal =
        problem_at(kWorkerFile.problems(changed(kWorkerFile, place, json::array())), place.path);
    static const std::regex range("from (\"([^\"]+)\" to \"([^\"]+)\"|([0-9]+) to ([0-9]+))");
    if (std::smatch bounds; std::regex_search(refusal, bounds, range)) {
      const std::string expected = bounds[2].matched
                                       ? "`" + bounds[2].str() + "` to `" + bounds[3].str() + "`"
                                       : bounds[4].str() + " to " + bounds[5].str();
      EXPECT_TRUE(has(allowed, expected)) << place.row << ": " << expected;
    }
    rows.erase(place.row);
  }
  for (const auto& [name, row] : rows) ADD_FAILURE() << name << " is no setting";
}

TEST(Documentation, ShowsExamplesThatLoad) {
  const TemporaryFile secret("pw\n", 0600);
  std::string page = source_file("docs/configuration.md");
  const std::string shown = "/run/secrets/kafka_password";
  page.replace(page.find(shown), shown.size(), secret.path());
  static const std::regex block("```jsonc\n([^`]+)```");
  std::size_t examples = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), block), end; it != end; ++it) {
    const Loaded loaded =
        load_text((*it)[1].str(), environment({{"DATABASE_URL", "postgresql:///db"}}));
    EXPECT_TRUE(loaded.config) << format(loaded.problems);
    ++examples;
  }
  EXPECT_EQ(examples, 2u);
}

TEST(Documentation, OfTheGateNamesEverySetting) {
  const std::string page = source_file("docs/gate.md");
  for (const Place& place : settings(kGateFile)) {
    const bool is_own = place.row.starts_with("gate.") || place.row.starts_with("routes[]");
    if (!is_own || place.row.starts_with("routes[].accept.record_key.")) continue;
    const std::string last = place.row.substr(place.row.rfind('.'));
    EXPECT_TRUE(has(page, "`" + place.row + "`") || has(page, "`" + last + "`")) << place.row;
  }
}

TEST(Documentation, ShowsEverySettingInTheFullExample) {
  const std::string page = source_file("docs/configuration.md");
  const auto start = page.find("```jsonc\n", page.find("## Every setting")) + 9;
  const json full =
      json::parse(page.substr(start, page.find("```", start) - start), nullptr, true, true);
  for (const Place& place : settings(kWorkerFile)) {
    std::string other = place.pointer.to_string();  // one route may not have them all
    if (other.starts_with("/routes/0/")) other[8] = '1';
    EXPECT_TRUE(full.contains(place.pointer) || full.contains(json::json_pointer(other)))
        << place.path;
  }
}

}  // namespace
}  // namespace hapax::config
