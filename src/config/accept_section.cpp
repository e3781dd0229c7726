#include "config/accept_section.hpp"

#include <algorithm>

#include "config/expand.hpp"
#include "config/rules.hpp"
#include "config/sections.hpp"
#include "key/json_pointer.hpp"
#include "key/key_source.hpp"

namespace hapax::config {
namespace {

constexpr std::size_t kOperationsKeyBytes = 64;

struct Pointer {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    const std::string allowed = "a JSON pointer such as \"/account\"";
    const auto pointer = reader.text(value, allowed);
    if (!pointer || (!pointer->empty() && !key::json_pointer_error(*pointer))) return pointer;
    reader.refuse(value, allowed);
    return std::nullopt;
  }
};

std::optional<int> digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Never shows the value.
struct SecretKey {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    const std::string is =
        "a key of 64 bytes, as 128 hex digits; make it with `openssl rand -hex 64`";
    const auto text = reader.text(value, "\"@/path/to/key\": " + is);
    if (!text) return std::nullopt;
    if (!is_indirect(value.json->get_ref<const std::string&>())) reader.literal_secret = true;
    std::string bytes;
    int high = 0;
    for (std::size_t i = 0; i < text->size(); ++i) {
      const auto digit = digit_of((*text)[i]);
      if (!digit) {
        bytes.clear();
        break;
      }
      if (i % 2 == 0)
        high = *digit;
      else
        bytes += static_cast<char>(high * 16 + *digit);
    }
    if (bytes.size() == kOperationsKeyBytes && text->size() == 2 * kOperationsKeyBytes)
      return bytes;
    reader.problem(value.path,
                   "holds " + std::to_string(text->size()) + " characters, and should be " + is);
    return std::nullopt;
  }
};

}  // namespace

void read_accept(Object& section, GateAccept& accept) {
  section.require("topic", accept.topic, Topic{}, "the topic that requests are sent to");
  section.require(
      "scope", accept.scope, Text{"a name that is not empty", 200},
      "the scope of the worker's route for that topic, which holds the results; a route "
      "without \"scope\" has the name of its handler");
  section.section("record_key", [&](Object& key) {
    key.read("json", accept.key_pointer, Pointer{});
    key.read("header", accept.key_header,
             Text{"the name of a header of the record, such as \":tenant\"", 200});
    std::ranges::transform(accept.key_header, accept.key_header.begin(), key::lower_case);
    key.finish();
    if (!accept.key_pointer.empty() && !accept.key_header.empty())
      key.reader().problem(key.path(), "\"json\" and \"header\" exclude each other");
  });
  section.finish();
}

void read_operations(Object& section, std::string& key) {
  section.read("key", key, SecretKey{});
  section.finish();
}

void complete_accepting(Object& root, GateConfig& config) {
  std::vector<std::string>& topics = config.base.publish.topics;
  bool accepts = false;
  for (std::size_t i = 0; i < config.gate.routes.size(); ++i) {
    const GateRoute& route = config.gate.routes[i];
    if (!route.accept) continue;
    accepts = true;
    if (route.accept->scope == config.gate.scope)
      root.reader().problem("routes[" + std::to_string(i) + "].accept.scope",
                            "is also gate.scope: a key of the gate could be taken for a worker's "
                            "result; name the scope of the worker's route here");
    const std::string& topic = route.accept->topic;
    if (!topic.empty() && std::ranges::count(topics, topic) == 0) topics.push_back(topic);
  }
  if (root.find("kafka") || accepts || !topics.empty())
    root.section("kafka", [&](Object& section) { read_kafka(section, config.base.kafka); });
  if (!accepts) return;
  if (config.gate.operations_key.empty() &&
      std::ranges::none_of(root.reader().problems, [](const Problem& problem) {
        return problem.path == "gate.operations.key";
      }))
    root.reader().problem(
        "gate.operations.key",
        "is missing: routes with \"accept\" need a key of 64 bytes that hides what "
        "is in /operations/<id>. `openssl rand -hex 64 > operations.key`, then "
        "\"@/path/to/operations.key\"");
  config.gate.routes.push_back({kOperationsPath, {"GET"}});
  Route& operations = config.base.routes.emplace_back();
  operations.topic = kOperationsPath;
  operations.handler = kOperationsHandler;
}

}  // namespace hapax::config
