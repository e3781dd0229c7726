#include "testing/route.hpp"

#include <algorithm>
#include <filesystem>

#include "config/expand.hpp"
#include "config/file_text.hpp"
#include "config/load.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"
#include "worker/connect_options.hpp"

namespace hapax::testing {
namespace {

using nlohmann::json;

// A test connects to a PostgreSQL of its own, and to no Kafka.
constexpr const char* kNoServer = "127.0.0.1:1";

[[noreturn]] void refuse(const std::vector<config::Problem>& problems, const std::string& source) {
  throw std::runtime_error(source + " is wrong:\n" + config::format(problems));
}

json document_of(const std::string& path) {
  const auto file = config::read_file(path);
  if (const auto* error = std::get_if<config::NotRead>(&file))
    throw std::runtime_error("cannot read the configuration " + path + ": " + error->why +
                             folder_of(path));
  std::vector<config::Problem> problems;
  auto document = config::parse(std::get<config::FileText>(file).text, problems);
  if (!document || !problems.empty()) refuse(problems, "the configuration " + path);
  if (!document->is_object())
    throw std::runtime_error("the configuration " + path + " is no JSON object");
  return std::move(*document);
}

json route_document(const HandlerFactory& handler, const Options& options) {
  json route = options.route;
  if (!route.is_object()) throw std::runtime_error("Options::route is no JSON object");
  if (!route.contains("topic")) route["topic"] = options.topic.empty() ? "test" : options.topic;
  if (!route.contains("handler")) route["handler"] = handler.name;
  return {{"routes", json::array({route})}};
}

// Takes settings out whose variable is not set or whose file cannot be read.
void forget_unset(json& value, const config::Environment& environment) {
  if (!value.is_structured()) return;
  for (auto member = value.begin(); member != value.end();) {
    std::vector<std::string> warnings;
    const bool unset = member->is_string() &&
                       config::is_indirect(member->get_ref<const std::string&>()) &&
                       std::holds_alternative<config::NotExpanded>(config::expand(
                           member->get_ref<const std::string&>(), environment, warnings));
    if (!unset) forget_unset(*member, environment);
    member = unset ? value.erase(member) : std::next(member);
  }
}

// What a worker would read, but for what is seldom set in tests: the servers, and the options of
// other handlers.
json for_a_test(json document, const HandlerFactory& handler,
                const config::Environment& environment) {
  for (auto& [name, section] : document.items())
    if (name != "routes" && name != "publish") forget_unset(section, environment);
  if (auto routes = document.find("routes"); routes != document.end() && routes->is_array())
    for (json& route : *routes)
      if (route.is_object() && route.contains("options") &&
          route.value("handler", json()) != handler.name)
        forget_unset(route["options"], environment);
  const auto set = [&](const char* section, const char* name, const std::string& value) {
    json& settings = document.emplace(section, json::object()).first.value();
    if (settings.is_object()) settings[name] = value;
  };
  set("kafka", "bootstrap.servers", kNoServer);
  set("kafka", "group.id", "test");
  set("postgres", "url", std::string("postgresql://") + kNoServer);
  return document;
}

config::Config config_of(const HandlerFactory& handler, const Options& options) {
  if (!options.config.empty() && !options.route.is_null())
    throw std::runtime_error(
        "Options::config and Options::route are both given; name the worker's configuration, or "
        "give the route itself");
  if (options.config.empty() && options.route.is_null())
    throw std::runtime_error(
        "a handler is tested on a route: name the worker's configuration in Options::config, or "
        "give the route itself in Options::route");
  const bool from_file = !options.config.empty();
  const json given = from_file ? document_of(options.config) : route_document(handler, options);
  const config::Environment process = config::process_environment();
  const auto environment = [&](const std::string& name) {
    const auto found = options.environment.find(name);
    return found != options.environment.end() ? found->second : process(name);
  };
  config::Loaded loaded =
      config::load_text(for_a_test(given, handler, environment).dump(), environment);
  if (!loaded.config)
    refuse(loaded.problems,
           from_file ? "the configuration " + options.config : std::string("Options::route"));
  if (from_file) config::resolve_paths(loaded.config->routes, options.config);
  return std::move(*loaded.config);
}

// Kafka's own default, a little less: there is no topic to ask.
constexpr std::size_t kLargestPublished = 1'000'000;

std::shared_ptr<const flow::Publishing> publishing_of(const config::Config& config,
                                                      const Options& options) {
  auto publishing = std::make_shared<flow::Publishing>();
  for (const auto* const topics : {&config.publish.topics, &options.publish_topics})
    for (const std::string& topic : *topics) publishing->topics[topic] = kLargestPublished;
  return publishing;
}

std::string routes_text(const std::vector<config::Route>& routes) {
  std::string text;
  for (const config::Route& route : routes)
    text += (text.empty() ? "" : ", ") + route.topic + " (handler " + route.handler + ")";
  return text;
}

}  // namespace

std::string folder_of(const std::string& path) {
  if (std::filesystem::path(path).is_absolute()) return {};
  return ". The test runs in " + std::filesystem::current_path().string() +
         ": start it in the folder of that file, as ctest does, or give an absolute path";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

TestedRoute read_route(const HandlerFactory& handler, const Options& options) {
  const config::Config config = config_of(handler, options);
  const auto fits = [&](const config::Route& route) {
    return route.handler == handler.name && (options.topic.empty() || route.topic == options.topic);
  };
  const auto fitting = std::ranges::count_if(config.routes, fits);
  if (fitting != 1)
    throw std::runtime_error(
        (fitting == 0 ? "no route" : "more than one route") + std::string(" for handler \"") +
        handler.name + "\"" + (options.topic.empty() ? "" : " on topic \"" + options.topic + "\"") +
        "; there is: " + routes_text(config.routes) +
        (fitting == 0 ? "" : ". Name the one that is meant in Options::topic."));
  const auto found = std::ranges::find_if(config.routes, fits);
  const config::Route& route = *found;
  if (const std::string why = flow::mismatch(route, handler); !why.empty())
    throw std::runtime_error(why);
  store::ConnectOptions connect = worker::connect_options(config);
  connect.application_name = "hapax test kit";
  flow::Route made = flow::make_route(route, handler);
  made.publishing = publishing_of(config, options);
  const std::string source = options.config.empty()
                                 ? "Options::route, tables"
                                 : options.config + ", routes[" +
                                       std::to_string(found - config.routes.begin()) + "].tables";
  return {std::move(made), route.options, connect, route.tables, source};
}

}  // namespace hapax::testing
