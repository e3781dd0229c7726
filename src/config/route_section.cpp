// One element of "routes": a topic and what is done with its messages.
#include <algorithm>

#include "config/rules.hpp"
#include "config/sections.hpp"

namespace hapax::config {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::optional<nlohmann::json> operator()(Reader& reader, const Value& value) const {
    if (value.json->is_object()) return reader.expanded(value);
    reader.refuse(value, "an object, handed to the handler as it is");
    return std::nullopt;
  }
};

// Of `tables`: "payments": ["SELECT", "INSERT"].
struct Rights {
  std::optional<std::vector<std::string>> operator()(Reader& reader, const Value& value) const {
    const Choice<std::string> words{
        {{"SELECT", "SELECT"}, {"INSERT", "INSERT"}, {"UPDATE", "UPDATE"}, {"DELETE", "DELETE"}}};
    std::vector<std::string> rights;
    for (const Value& element :
         reader.elements(value, "an array of \"SELECT\", \"INSERT\", \"UPDATE\", \"DELETE\""))
      if (auto right = words(reader, element)) rights.push_back(*std::move(right));
    return rights;
  }
};

void read_tables(Object& section, Route& route) {
  for (const auto& [table, rights] : section.members().items())
    section.read(table, route.tables[table], Rights{});
  section.finish();
}

void read_retry(Object& section, Retry& retry) {
  section.read("max_attempts", retry.max_attempts, Whole{1, 1'000'000});
  section.read("max_crashes", retry.max_crashes, Whole{1, 1'000});
  section.read("first", retry.first, Duration{1ms, 24h});
  section.read("max", retry.max, Duration{1ms, 24h});
  section.read("max_elapsed", retry.max_elapsed, Duration{1ms, 24h * 3650});
  section.finish();
  if (retry.first > retry.max)
    section.reader().problem(section.path(), "first is longer than max; raise max or lower first");
}

void read_outside(Object& section, Outside& outside) {
  const Choice<Repeat> words{{{"idempotent", Repeat::idempotent},
                              {"queryable", Repeat::queryable},
                              {"never", Repeat::never}}};
  section.require("repeat", outside.repeat, words,
                  "what the other side does with a call that comes again: \"idempotent\", "
                  "\"queryable\" or \"never\"");
  section.read("remembers", outside.remembers, Duration{1s, 24h * 3650});
  section.read("lease", outside.lease, Duration{2s, 1h});
  section.read("max_duration", outside.max_duration, Duration{100ms, 24h});
  section.read("concurrency", outside.concurrency, Whole{1, 4'096});
  section.finish();
  const bool remembers = outside.remembers.count() > 0;
  if (outside.repeat == Repeat::idempotent && !remembers)
    section.reader().problem(section.path(),
                             "\"repeat\": \"idempotent\" needs \"remembers\": how long the other "
                             "side keeps an idempotency key, such as \"23h\"");
  if (outside.repeat != Repeat::idempotent && remembers)
    section.reader().problem(section.path(),
                             "\"remembers\" is for \"repeat\": \"idempotent\"; leave it out");
}

}  // namespace

std::optional<std::string> Topic::operator()(Reader& reader, const Value& value) const {
  const std::string allowed =
      "the name of one topic: up to 249 letters, digits, '.', '_' and '-' (no patterns)";
  const auto name = reader.text(value, allowed);
  if (!name) return std::nullopt;
  const bool letters = std::all_of(name->begin(), name->end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  const bool length = !name->empty() && name->size() <= 249;
  if (letters && length && *name != "." && *name != "..") return name;
  reader.refuse(value, allowed);
  return std::nullopt;
}

void read_publish(Object& section, Publish& publish) {
  if (const auto value = section.find("topics"))
    for (const Value& element :
         section.reader().elements(*value, "an array of topics that handlers may publish to")) {
      const auto topic = Topic{}(section.reader(), element);
      if (topic && std::ranges::count(publish.topics, *topic) > 0)
        section.reader().problem(element.path, "the topic " + *topic + " is named twice");
      if (topic) publish.topics.push_back(*topic);
    }
  section.read("transactions", publish.transactions, Flag{});
  section.finish();
}

void read_handler(Object& section, Route& route) {
  constexpr std::uint64_t kLargestResult = std::uint64_t{16} << 20;
  const std::string handler = "the name of a handler";
  section.require("handler", route.handler, Text{handler, 200},
                  handler + ", as the plugin or the program names it");
  section.read("plugin", route.plugin, Text{"the path of a plugin, such as \"./libpayments.so\""});
  section.read("options", route.options, Options{});
  section.read("max_result_bytes", route.max_result_bytes, Size{1, kLargestResult});
  section.section("tables", [&](Object& tables) { read_tables(tables, route); });
}

void read_route(Object& section, Route& route) {
  section.require("topic", route.topic, Topic{}, "the name of the topic");
  read_handler(section, route);
  read_key_spec(section, route.handler, route.key);
  read_payload(section, route);
  section.read("dead_letter_topic", route.dead_letter_topic, Topic{});
  section.section("retry", [&](Object& retry) { read_retry(retry, route.retry); });
  section.read("retention", route.retention, Duration{1min, 24h * 3650});
  section.read("batch", route.batch, Whole{1, 10'000});
  section.read("breaker", route.breaker, Whole{0, 1'000'000});
  if (section.find("outside"))
    section.section("outside",
                    [&](Object& outside) { read_outside(outside, route.outside.emplace()); });
  section.finish();
}

}  // namespace hapax::config
