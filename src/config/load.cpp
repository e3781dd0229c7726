#include "config/load.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "config/file_text.hpp"
#include "config/kafka_rules.hpp"
#include "config/reader.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"

namespace hapax::config {
namespace {

void read_routes(Object& document, std::vector<Route>& routes) {
  Reader& reader = document.reader();
  const std::string what = "an array of routes, one for each topic";
  const auto value = document.find("routes");
  if (!value) {
    reader.problem("routes", "is missing: " + what);
    return;
  }
  std::map<std::string, std::string> route_of;
  for (const Value& element : reader.elements(*value, what)) {
    Object section(reader, element);
    read_route(section, routes.emplace_back());
    const std::string& topic = routes.back().topic;
    const auto [first, added] = route_of.try_emplace(topic, element.path);
    if (!added && !topic.empty()) {
      reader.problem(element.path + ".topic",
                     first->second + " already has the topic " + topic + "; a topic has one route");
    }
  }
}

// What no section can see alone.
void check_together(Reader& reader, const Config& config) {
  const auto found = config.kafka.properties.find("max.poll.interval.ms");
  const std::chrono::milliseconds interval(
      found == config.kafka.properties.end()
          ? kDefaultMaxPollIntervalMs
          : milliseconds_of(found->second).value_or(kDefaultMaxPollIntervalMs));
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    const std::string& dead = config.routes[i].dead_letter_topic;
    if (!dead.empty() &&
        std::ranges::any_of(config.routes, [&](const Route& r) { return r.topic == dead; }))
      reader.problem("routes[" + std::to_string(i) + "].dead_letter_topic",
                     "the topic " + dead +
                         " is a route's own: its dead letters would come back as messages; name a "
                         "topic that this group does not consume");
  }
  for (std::size_t i = 1; i < config.routes.size(); ++i) {
    const Route& route = config.routes[i];
    const auto other = std::ranges::find_if(config.routes, [&](const Route& r) {
      return r.key.scope == route.key.scope && r.retention != route.retention;
    });
    if (other - config.routes.begin() < static_cast<std::ptrdiff_t>(i))
      reader.problem("routes[" + std::to_string(i) + "].retention",
                     "differs from that of routes[" +
                         std::to_string(other - config.routes.begin()) +
                         "], and both have the scope " + route.key.scope +
                         ": once the shorter one has forgotten an operation, the other one would "
                         "let it take effect again; write the same retention in both");
  }
  // A revoke waits without polling. Half of it: the checkpoint and the offset commit come after.
  if (config.worker.revoke_timeout > interval / 2) {
    reader.problem("worker.revoke_timeout",
                   "is more than half of kafka's max.poll.interval.ms (" +
                       std::to_string(interval.count()) +
                       "): Kafka would give the partitions away meanwhile; lower it, or raise "
                       "max.poll.interval.ms");
  }
}

Loaded load(std::string_view text, const Environment& environment, const std::string* file,
            bool open_to_others) {
  Config config;
  Document document = read_document(text, environment, file, open_to_others, [&](Object& root) {
    root.section("kafka", [&](Object& section) { read_kafka(section, config.kafka); });
    root.section("postgres", [&](Object& section) { read_postgres(section, config.postgres); });
    root.section("worker", [&](Object& section) { read_worker(section, config.worker); });
    if (root.is_object()) read_routes(root, config.routes);
    root.section("publish", [&](Object& section) { read_publish(section, config.publish); });
    root.section("admin", [&](Object& section) { read_admin(section, config.admin); });
    root.section("traces", [&](Object& section) { read_traces(section, config.traces); });
    root.section("log", [&](Object& section) { read_log(section, config.log); });
    root.section("console", [&](Object& section) { read_console(section, config.console); });
    root.finish();
    check_together(root.reader(), config);
  });
  if (file != nullptr) resolve_paths(config.routes, *file);
  Loaded loaded{{}, std::move(document.problems), {}, std::move(document.warnings)};
  if (loaded.problems.empty())
    loaded.config = std::move(config);
  else
    loaded.routes = std::move(config.routes);
  return loaded;
}

}  // namespace

Document read_document(std::string_view text, const Environment& environment,
                       const std::string* file, bool open_to_others,
                       const std::function<void(Object&)>& read) {
  Reader reader(environment);
  if (const auto document = parse(text, reader.problems)) {
    Object root(reader, {&*document, ""});
    root.find("$schema");  // for editors
    read(root);
  }
  if (open_to_others && reader.literal_secret) {
    reader.warnings.push_back(
        open_to_others_warning("the configuration holds a password, and", *file) +
        ", or move the password out with @/path/to/secret");
  }
  return {std::move(reader.problems), std::move(reader.warnings)};
}

void resolve_paths(std::vector<Route>& routes, const std::string& file) {
  for (Route& route : routes)
    for (std::string* const path :
         {&route.plugin, &route.payload.schema, &route.payload.registry.ca_file})
      if (!path->empty()) *path = std::filesystem::path(file).replace_filename(*path);
}

Loaded load_text(std::string_view text, const Environment& environment) {
  return load(text, environment, nullptr, false);
}

Loaded load_file(const std::string& path, const Environment& environment) {
  const auto file = read_file(path);
  if (const auto* error = std::get_if<NotRead>(&file))
    return {std::nullopt, {{"", "cannot read " + path + ": " + error->why}}, {}, {}};
  const auto& [text, open_to_others] = std::get<FileText>(file);
  return load(text, environment, &path, open_to_others);
}

}  // namespace hapax::config
