// The configuration of `hapax gate`.
#include <algorithm>
#include <filesystem>

#include "config/accept_section.hpp"
#include "config/file_text.hpp"
#include "config/gate.hpp"
#include "config/gate_callers.hpp"
#include "config/rules.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"

namespace hapax::config {
namespace {

using namespace std::chrono_literals;

// A template without an empty segment, such as /accounts/{account}/payments.
bool is_path(const std::string& path) {
  if (path == "/") return true;
  if (!path.starts_with('/') || path.ends_with('/')) return false;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string segment = path.substr(begin, end - begin);
    const bool parameter = segment.starts_with('{') && segment.ends_with('}') &&
                           is_lower_token(segment.substr(1, segment.size() - 2));
    const bool literal = !segment.empty() && is_printable(segment) &&
                         segment.find_first_of("{}?#%\\\"<>") == std::string::npos &&
                         segment != "." && segment != "..";
    if (!parameter && !literal) return false;
    begin = end + 1;
  }
  return true;
}

// What two templates have in common if one request fits both equally well.
std::string shape_of(const std::string& path) {
  std::string shape;
  bool inside = false;
  for (const char c : path) {
    if (!inside) shape += c;
    if (c == '{') inside = true;
    if (c == '}') inside = false;
  }
  return shape;
}

struct Path {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    const std::string allowed =
        "a path such as \"/accounts/{account}/payments\", without a slash at its end";
    const auto path = reader.text(value, allowed);
    if (!path || (is_path(*path) && path->size() <= 200)) return path;
    reader.refuse(value, allowed);
    return std::nullopt;
  }
};

// Each element by `rule`.
template <class Rule>
std::optional<std::vector<std::string>> texts(Reader& reader, const Value& value,
                                              const std::string& what, const Rule& rule) {
  std::vector<std::string> read;
  for (const Value& element : reader.elements(value, what))
    if (auto text = rule(reader, element)) read.push_back(*std::move(text));
  return read;
}

struct Method {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    const std::string allowed = R"("GET", "POST", "PUT", "PATCH", "DELETE")";
    const auto text = reader.text(value, allowed);
    if (!text || allowed.find('"' + *text + '"') != std::string::npos) return text;
    reader.refuse(value, allowed);
    return std::nullopt;
  }
};

void read_limits(Object& section, GateLimits& limits) {
  constexpr std::uint64_t kKiB = 1024;
  section.read("connections", limits.connections, Whole{1, 1'000'000});
  section.read("requests", limits.requests, Whole{1, 1'000'000'000});
  section.read("headers", limits.headers, Whole{1, 10'000});
  section.read("header_bytes", limits.header_bytes, Size{256, 60 * kKiB});
  section.read("body_bytes", limits.body_bytes, Size{0, 256 * kKiB * kKiB});
  section.read("bodies_bytes", limits.bodies_bytes, Size{kKiB, 64 * kKiB * kKiB * kKiB});
  section.read("header_time", limits.header_time, Duration{100ms, 10min});
  section.read("body_time", limits.body_time, Duration{100ms, 1h});
  section.read("idle_time", limits.idle_time, Duration{100ms, 1h});
  section.finish();
  if (limits.bodies_bytes < limits.body_bytes)
    section.reader().problem(section.path(),
                             "bodies_bytes is less than body_bytes: one request must fit");
}

void read_gate(Object& section, Gate& gate) {
  std::optional<Listen> listen = gate.listen;
  read_listen(section, "listen", listen);
  if (!listen) section.reader().problem(member_path(section.path(), "listen"), "cannot be off");
  if (listen) gate.listen = *listen;
  section.read("name", gate.name, Text{"a name that is not empty", 200});
  section.read("scope", gate.scope, Text{"a name that is not empty", 200});
  section.read("retention", gate.retention, Duration{1min, 24h * 3650});
  section.read("lanes", gate.lanes, Whole{1, 256});
  section.read("queue", gate.queue, Whole{1, 1'000'000});
  section.read("wait", gate.wait, Duration{10ms, 5min});
  section.read("shutdown_timeout", gate.shutdown_timeout, Duration{0ms, 1h});
  section.read("handler_timeout", gate.handler_timeout, Duration{1s, 24h});
  section.read("rules", gate.rules, Text{"the URL of a page that tells clients the rules", 1'000});
  if (!is_printable(gate.rules) || gate.rules.find_first_of("<>\"") != std::string::npos)
    section.reader().problem(member_path(section.path(), "rules"), "is not a URL");
  section.section("limits", [&](Object& limits) { read_limits(limits, gate.limits); });
  if (section.find("tls")) section.section("tls", [&](Object& tls) { read_tls(tls, gate.tls); });
  section.section("callers", [&](Object& callers) {
    read_callers(callers, gate.callers, !gate.tls.client_ca.empty());
  });
  section.section("operations",
                  [&](Object& operations) { read_operations(operations, gate.operations_key); });
  section.finish();
}

void read_gate_route(Object& section, GateRoute& route, Route& base) {
  section.require("path", route.path, Path{}, "the path that clients call");
  base.topic = route.path;
  if (route.path == "/healthz" || route.path == "/readyz" ||
      shape_of(route.path) == shape_of(kOperationsPath))
    section.reader().problem(member_path(section.path(), "path"), "is the gate's own");
  if (section.find("accept")) {
    section.section("accept", [&](Object& accept) { read_accept(accept, route.accept.emplace()); });
    for (const char* const name : {"handler", "plugin", "options", "max_result_bytes", "tables"})
      if (section.find(name))
        section.reader().problem(
            member_path(section.path(), name),
            "stands beside \"accept\", whose requests a worker runs; leave out "
            "one of the two");
    base.handler = kAcceptHandler;
  } else {
    read_handler(section, base);
  }
  base.batch = kGateBatch;
  section.read("batch", base.batch, Whole{1, 1'000});
  section.read("methods", route.methods, [](Reader& reader, const Value& value) {
    return texts(reader, value, "an array of methods", Method{});
  });
  if (route.accept && std::ranges::count(route.methods, "GET") > 0)
    section.reader().problem(member_path(section.path(), "methods"),
                             "a GET has no key, so it cannot be accepted");
  section.read("tenants", route.tenants, [](Reader& reader, const Value& value) {
    return texts(reader, value, "an array of the tenants that may call it; leave it out if all may",
                 Text{"a tenant", kMaxTenant});
  });
  section.finish();
}

void read_gate_routes(Object& root, GateConfig& config) {
  const std::string what = "an array of routes, one for each path";
  const auto value = root.find("routes");
  if (!value) {
    root.reader().problem("routes", "is missing: " + what);
    return;
  }
  std::vector<std::string> shapes;
  for (const Value& element : root.reader().elements(*value, what)) {
    Object section(root.reader(), element);
    GateRoute& route = config.gate.routes.emplace_back();
    read_gate_route(section, route, config.base.routes.emplace_back());
    const std::string shape = shape_of(route.path);
    if (!shape.empty() && std::ranges::count(shapes, shape) > 0)
      root.reader().problem(element.path + ".path", "another route takes the same requests");
    shapes.push_back(shape);
  }
}

LoadedGate load_gate(std::string_view text, const Environment& environment, const std::string* file,
                     bool open_to_others) {
  GateConfig config;
  Document document = read_document(text, environment, file, open_to_others, [&](Object& root) {
    root.section("gate", [&](Object& section) { read_gate(section, config.gate); });
    root.section("postgres",
                 [&](Object& section) { read_postgres(section, config.base.postgres); });
    if (root.is_object()) read_gate_routes(root, config);
    root.section("publish", [&](Object& section) { read_publish(section, config.base.publish); });
    if (root.is_object()) complete_accepting(root, config);
    root.section("admin", [&](Object& section) { read_admin(section, config.base.admin); });
    root.section("traces", [&](Object& section) { read_gate_traces(section, config.base.traces); });
    root.section("log", [&](Object& section) { read_log(section, config.base.log); });
    root.finish();
  });
  if (file != nullptr) resolve_paths(config.base.routes, *file);
  GateTls& tls = config.gate.tls;
  for (std::string* const path : {&tls.certificate, &tls.key, &tls.client_ca})
    if (file != nullptr && !path->empty())
      *path = std::filesystem::path(*file).replace_filename(*path);
  if (!tls.key.empty() && config::open_to_others(tls.key))
    document.warnings.push_back(open_to_others_warning("the private key", tls.key));
  config.base.worker.name = config.gate.name;
  config.base.worker.lanes = config.gate.lanes;
  for (Route& route : config.base.routes) {
    route.key.scope = config.gate.scope;
    route.retention = config.gate.retention;
  }
  LoadedGate loaded{{}, std::move(document.problems), std::move(document.warnings)};
  if (loaded.problems.empty()) loaded.config = std::move(config);
  return loaded;
}

}  // namespace

LoadedGate load_gate_text(std::string_view text, const Environment& environment) {
  return load_gate(text, environment, nullptr, false);
}

bool is_gate_file(const std::string& path) {
  const auto file = read_file(path);
  const auto* text = std::get_if<FileText>(&file);
  if (text == nullptr) return false;
  std::vector<Problem> ignored;
  const auto document = parse(text->text, ignored);
  return document && document->is_object() && document->contains("gate");
}

LoadedGate load_gate_file(const std::string& path, const Environment& environment) {
  const auto file = read_file(path);
  if (const auto* error = std::get_if<NotRead>(&file))
    return {std::nullopt, {{"", "cannot read " + path + ": " + error->why}}, {}};
  const auto& [text, open_to_others] = std::get<FileText>(file);
  return load_gate(text, environment, &path, open_to_others);
}

}  // namespace hapax::config
