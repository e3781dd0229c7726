#include "testing/route.hpp"

#include <algorithm>

#include "config/file_text.hpp"
#include "config/load.hpp"
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
    throw std::runtime_error("cannot read the configuration " + path + ": " + error->why);
  std::vector<config::Problem> problems;
  auto document = config::parse(std::get<config::FileText>(file).text, problems);
  if (!document || !problems.empty()) refuse(problems, "the configuration " + path);
  return std::move(*document);
}

json route_document(const HandlerFactory& handler, const Options& options) {
  json route = options.route;
  if (!route.is_object()) throw std::runtime_error("Options::route is no JSON object");
  if (!route.contains("topic")) route["topic"] = options.topic.empty() ? "test" : options.topic;
  if (!route.contains("handler")) route["handler"] = handler.name;
  return {{"routes", json::array({route})}};
}

// Without the servers' addresses: their variables are seldom set in tests.
config::Config config_of(const HandlerFactory& handler, const Options& options) {
  if (options.config.empty() == options.route.is_null())
    throw std::runtime_error(
        "a handler is tested on a route: name the worker's configuration in Options::config, or "
        "give the route itself in Options::route");
  const bool from_file = !options.config.empty();
  const json given = from_file ? document_of(options.config) : route_document(handler, options);
  json document = {{"kafka", {{"bootstrap.servers", kNoServer}, {"group.id", "test"}}}};
  document["postgres"] = given.value("postgres", json::object());
  document["postgres"]["url"] = std::string("postgresql://") + kNoServer;
  for (const char* const section : {"routes", "publish"})
    if (given.contains(section)) document[section] = given[section];
  const config::Environment process = config::process_environment();
  const auto environment = [&](const std::string& name) {
    const auto found = options.environment.find(name);
    return found != options.environment.end() ? found->second : process(name);
  };
  config::Loaded loaded = config::load_text(document.dump(), environment);
  if (!loaded.config)
    refuse(loaded.problems,
           from_file ? "the configuration " + options.config : std::string("Options::route"));
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
  const config::Route& route = *std::ranges::find_if(config.routes, fits);
  if (const std::string why = flow::mismatch(route, handler); !why.empty())
    throw std::runtime_error(why);
  store::ConnectOptions connect = worker::connect_options(config);
  connect.application_name = "hapax test kit";
  flow::Route made = flow::make_route(route, handler);
  made.publishing = publishing_of(config, options);
  return {std::move(made), {route.topic, route.options.dump()}, connect};
}

}  // namespace hapax::testing
