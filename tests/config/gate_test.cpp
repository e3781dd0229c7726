#include "config/gate.hpp"

#include <gtest/gtest.h>

#include "sample.hpp"

namespace hapax::config {
namespace {

using nlohmann::json;

const std::string kDigest(64, 'a');

json minimal_gate() {
  return json::parse(R"({
    "gate": {"callers": {"tokens": "ann )" +
                     kDigest + R"("}},
    "postgres": {"url": "postgresql:///payments"},
    "routes": [{"path": "/payments", "handler": "book"}]
  })");
}

LoadedGate load_gate_json(const json& document) {
  return load_gate_text(document.dump(), environment({}));
}

// What is wrong at the place; "" if nothing is.
std::string gate_problem(const std::string& pointer, const json& value, const std::string& path) {
  json document = minimal_gate();
  document[json::json_pointer(pointer)] = value;
  std::string messages;
  for (const Problem& problem : load_gate_json(document).problems)
    if (problem.path == path) messages += problem.message;
  return messages;
}

TEST(GateConfig, ReadsTheLeastAndFillsInTheRest) {
  const LoadedGate loaded = load_gate_json(minimal_gate());
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  const Gate& gate = loaded.config->gate;
  EXPECT_EQ(gate.listen, (Listen{"127.0.0.1", 8080}));
  EXPECT_EQ(gate.limits, GateLimits());
  ASSERT_EQ(gate.callers.tokens.size(), 1U);
  EXPECT_EQ(gate.callers.tokens[0].tenant, "ann");
  EXPECT_EQ(gate.callers.tokens[0].digest, std::string(32, '\xAA'));
  EXPECT_EQ(gate.routes.at(0).methods, std::vector<std::string>{"POST"});
  const Route& base = loaded.config->base.routes.at(0);
  EXPECT_EQ(base.topic + " " + base.handler + " " + base.key.scope, "/payments book gate");
  EXPECT_EQ(base.retention, std::chrono::hours(168));
  EXPECT_EQ(base.batch, 16U);
}

TEST(GateConfig, BoundsABatch) {
  for (const std::size_t batch : {1U, 1'000U}) {
    json document = minimal_gate();
    document["routes"][0]["batch"] = batch;
    const LoadedGate loaded = load_gate_json(document);
    ASSERT_TRUE(loaded.config) << format(loaded.problems);
    EXPECT_EQ(loaded.config->base.routes.at(0).batch, batch);
  }
  for (const json& batch : {json(0), json(1'001), json(-1), json(2.5)})
    EXPECT_EQ(gate_problem("/routes/0/batch", batch, "routes[0].batch"),
              "found " + batch.dump() + "; allowed: a whole number from 1 to 1000");
}

TEST(GateConfig, CertificatesOfClientsAreCallersEnough) {
  json document = minimal_gate();
  document["gate"]["callers"] = json::object();
  document["gate"]["tls"] = {{"certificate", "a.pem"}, {"key", "a.key"}, {"client_ca", "c.pem"}};
  EXPECT_TRUE(load_gate_json(document).config) << format(load_gate_json(document).problems);
  document["gate"]["tls"].erase("client_ca");
  EXPECT_FALSE(load_gate_json(document).config);
  EXPECT_TRUE(has(gate_problem("/gate/tls", {{"certificate", "a.pem"}}, "gate.tls.key"),
                  "is missing: the file of the certificate's private key"));
}

TEST(GateConfig, NamesEveryMistake) {
  EXPECT_TRUE(has(gate_problem("/gate/callers", json::object(), "gate.callers"), "who may call"));
  EXPECT_TRUE(
      has(gate_problem("/gate/callers/proxy", {{"header", "x"}}, "gate.callers.proxy.addresses"),
          "is missing: the addresses or networks of proxies"));
  EXPECT_TRUE(
      has(gate_problem("/gate/callers/proxy", {{"header", "x"}, {"addresses", json::array()}},
                       "gate.callers.proxy.addresses"),
          "such as"));
  EXPECT_TRUE(
      has(gate_problem("/gate/callers/proxy", {{"header", "X-A"}, {"addresses", {"10.0.0.0/8"}}},
                       "gate.callers.proxy.header"),
          "lower case"));
  EXPECT_TRUE(
      has(gate_problem("/gate/callers/proxy", {{"header", "x"}, {"addresses", {"10.0.0.0/33"}}},
                       "gate.callers.proxy.addresses[0]"),
          "addresses or networks"));
  for (const std::string& line : {std::string("ann"), std::string("ann secret"), " " + kDigest,
                                  "ann " + kDigest + "0", kDigest}) {
    const std::string problem =
        gate_problem("/gate/callers/tokens", "x " + kDigest + "\n" + line, "gate.callers.tokens");
    EXPECT_TRUE(has(problem, "line 2 is wrong")) << line << problem;
    EXPECT_FALSE(has(problem, "secret"));
  }
  EXPECT_TRUE(has(gate_problem("/gate/callers/tokens", "x " + kDigest + "\ny " + kDigest,
                               "gate.callers.tokens"),
                  "line 2 has the token of another tenant"));
  EXPECT_EQ(
      gate_problem("/routes/0/tenants", json::array(), "routes[0].tenants"),
      "found an empty array; allowed: an array of the tenants that may call it; leave it out if "
      "all may")
      << "once";
  for (const char* path :
       {"payments", "/a/", "/a//b", "/a?b", "/{", "/{A}", "/a{b}", "/%41", "/.."})
    EXPECT_NE(gate_problem("/routes/0/path", path, "routes[0].path"), "") << path;
  EXPECT_TRUE(
      has(gate_problem("/routes/1", {{"path", "/payments"}, {"handler", "b"}}, "routes[1].path"),
          "same requests"));
  EXPECT_NE(gate_problem("/routes/0/path", "/healthz", "routes[0].path"), "");
  EXPECT_NE(gate_problem("/routes/0/methods", {"HEAD"}, "routes[0].methods[0]"), "");
  EXPECT_NE(gate_problem("/gate/listen", false, "gate.listen"), "");
  EXPECT_NE(gate_problem("/gate/limits/bodies_bytes", "1KiB", "gate.limits"), "");
  EXPECT_NE(gate_problem("/gate/limits/header_bytes", "61KiB", "gate.limits.header_bytes"), "");
  EXPECT_EQ(gate_problem("/gate/limits/header_bytes", "60KiB", "gate.limits.header_bytes"), "");
  EXPECT_NE(gate_problem("/gate/rules", "a b", "gate.rules"), "");
  EXPECT_NE(gate_problem("/traces", {{"parent", "link"}}, "traces.parent"), "")
      << "it means nothing";
  EXPECT_TRUE(has(gate_problem("/gate/lane", 3, "gate.lane"), "did you mean lanes"));
}

json accepting_gate() {
  json document = minimal_gate();
  document["gate"]["operations"] = {{"key", std::string(128, 'a')}};
  document["kafka"] = {{"bootstrap.servers", "k:9092"}, {"group.id", "bookers"}};
  document["routes"] = json::parse(
      R"([{"path": "/payments", "accept": {"topic": "requests", "scope": "booking"}},
          {"path": "/direct", "handler": "book"}])");
  return document;
}

std::string accept_problem(const json& patch, const std::string& path) {
  json document = accepting_gate();
  document.merge_patch(patch);
  std::string messages;
  for (const Problem& problem : load_gate_json(document).problems)
    if (problem.path == path) messages += problem.message;
  return messages;
}

TEST(GateConfig, ARouteMayAccept) {
  const LoadedGate loaded = load_gate_json(accepting_gate());
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  const GateConfig& config = *loaded.config;
  EXPECT_EQ(config.gate.operations_key, std::string(64, '\xAA'));
  EXPECT_EQ(config.gate.routes.at(0).accept, (GateAccept{"requests", "booking", "", ""}));
  EXPECT_FALSE(config.gate.routes.at(1).accept);
  EXPECT_EQ(config.gate.routes.at(2).path, kOperationsPath);
  EXPECT_EQ(config.gate.routes.at(2).methods, std::vector<std::string>{"GET"});
  EXPECT_EQ(config.base.routes.at(0).handler, kAcceptHandler);
  EXPECT_EQ(config.base.routes.at(2).handler, kOperationsHandler);
  EXPECT_EQ(config.base.publish.topics, std::vector<std::string>{"requests"});
  EXPECT_EQ(config.base.kafka.properties.at("group.id"), "bookers");
}

TEST(GateConfig, NamesWhatARouteThatAcceptsLacks) {
  EXPECT_TRUE(has(accept_problem({{"gate", {{"operations", nullptr}}}}, "gate.operations.key"),
                  "is missing"));
  for (const std::string& key : {std::string("secret"), std::string(127, 'a'),
                                 std::string(129, 'a'), std::string(128, 'g'), std::string()}) {
    const std::string problem =
        accept_problem({{"gate", {{"operations", {{"key", key}}}}}}, "gate.operations.key");
    EXPECT_TRUE(has(problem, std::to_string(key.size()) + " characters")) << problem;
    EXPECT_TRUE(has(problem, "openssl rand -hex 64"));
    EXPECT_FALSE(has(problem, "secret"));
    EXPECT_FALSE(has(problem, "is missing"));
  }
  EXPECT_TRUE(has(accept_problem({{"kafka", nullptr}}, "kafka.bootstrap.servers"), "is missing"));
  const auto of_route = [](const json& route, const std::string& path) {
    return accept_problem({{"routes", json::array({route})}}, "routes[0]." + path);
  };
  EXPECT_TRUE(
      has(of_route({{"path", "/a"}, {"accept", json::object()}}, "accept.topic"), "is missing"));
  EXPECT_TRUE(
      has(of_route({{"path", "/a"}, {"accept", {{"topic", "t"}}}}, "accept.scope"), "is missing"));
  EXPECT_TRUE(has(
      of_route({{"path", "/a"}, {"accept", {{"topic", "t"}, {"scope", "gate"}}}}, "accept.scope"),
      "gate.scope"));
  const json accept{{"topic", "t"}, {"scope", "s"}};
  for (const char* const name : {"handler", "plugin", "options"})
    EXPECT_TRUE(has(of_route({{"path", "/a"}, {"accept", accept}, {name, "x"}}, name),
                    "beside \"accept\""));
  EXPECT_TRUE(has(of_route({{"path", "/a"}, {"accept", accept}, {"methods", {"GET"}}}, "methods"),
                  "no key"));
  EXPECT_TRUE(
      has(of_route({{"path", "/operations/{id}"}, {"accept", accept}}, "path"), "gate's own"));
  json keyed = accept;
  keyed["record_key"] = {{"json", "account"}};
  EXPECT_NE(of_route({{"path", "/a"}, {"accept", keyed}}, "accept.record_key.json"), "");
}

bool is_in(const std::string& network, const std::string& address) {
  return parse_network(network)->contains(*parse_address(address));
}

TEST(GateConfig, NetworksHoldAddresses) {
  EXPECT_TRUE(is_in("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(is_in("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(is_in("10.0.0.4/30", "10.0.0.7"));
  EXPECT_FALSE(is_in("10.0.0.4/30", "10.0.0.8"));
  EXPECT_TRUE(is_in("10.0.0.7", "::ffff:10.0.0.7"));
  EXPECT_FALSE(is_in("10.0.0.7", "10.0.0.6"));
  EXPECT_TRUE(is_in("0.0.0.0/0", "1.2.3.4"));
  EXPECT_FALSE(is_in("0.0.0.0/0", "::1"));
  EXPECT_TRUE(is_in("fd00::/8", "fdff::1"));
  for (const char* text : {"", "10.0.0", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "::/129", "x"})
    EXPECT_FALSE(parse_network(text)) << text;
}

}  // namespace
}  // namespace hapax::config
