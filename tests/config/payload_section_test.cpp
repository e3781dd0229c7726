#include <gtest/gtest.h>

#include <filesystem>

#include "sample.hpp"

namespace hapax::config {
namespace {

using nlohmann::json;

const json kAvro = {{"format", "avro"}, {"registry", {{"url", "https://registry:8081/"}}}};

Route route(const json& payload) {
  const Loaded loaded = load(with("/routes/0/payload", payload));
  EXPECT_TRUE(loaded.config) << format(loaded.problems);
  return loaded.config ? loaded.config->routes.at(0) : Route{};
}

std::string problem(const json& payload, const std::string& inside) {
  return problem_at(load(with("/routes/0/payload", payload)), "routes[0].payload" + inside);
}

TEST(PayloadSection, ReadsFormatRegistryAndSchema) {
  EXPECT_EQ(route({{"schema", "a.json"}}).payload.schema, "a.json");
  EXPECT_EQ(route({{"format", "json"}}).payload.format, Payload::Format::json);
  const Route avro = route(kAvro);
  EXPECT_EQ(avro.payload.format, Payload::Format::avro);
  EXPECT_EQ(avro.payload.registry.url, "https://registry:8081");
  json protobuf = kAvro;
  protobuf["format"] = "protobuf";
  EXPECT_EQ(route(protobuf).payload.format, Payload::Format::protobuf);
  EXPECT_EQ(route(protobuf).key.format, "protobuf");
}

// Bytes hold the id of the schema, which is no part of an operation.
TEST(PayloadSection, ComparesDecodedPayloads) {
  using Kind = key::FingerprintRule::Kind;
  EXPECT_EQ(route(kAvro).key.fingerprint.kind, Kind::json);
  EXPECT_EQ(route(kAvro).key.format, "avro");
  EXPECT_EQ(route({{"schema", "a.json"}}).key.fingerprint.kind, Kind::payload);
  json document = with("/routes/0/payload", kAvro);
  document["routes"][0]["fingerprint"] = "payload";
  EXPECT_EQ(load(document).config.value().routes[0].key.fingerprint.kind, Kind::payload);
  document["routes"][0]["key"] = "content_hash";
  EXPECT_TRUE(has(problem_at(load(document), "routes[0].key"), "take effect twice"));
}

TEST(PayloadSection, RefusesWhatDoesNothingOrIsMissing) {
  EXPECT_TRUE(has(problem(json::object(), ""), "is empty"));
  EXPECT_TRUE(has(problem({{"format", "avro"}}, ""), "\"avro\" needs \"registry\""));
  EXPECT_TRUE(has(problem({{"format", "protobuf"}}, ""), "\"protobuf\" needs \"registry\""));
  json framed = kAvro;
  framed["format"] = "json";
  EXPECT_TRUE(has(problem(framed, ".registry"), "leave it out"));
  framed["format"] = "thrift";  // it may be meant to ask
  EXPECT_EQ(problem(framed, ".registry"), "");
  EXPECT_NE(problem(framed, ".format"), "");
  json document = with("/routes/0/payload", kAvro);
  document["routes"][0]["outside"] = {{"repeat", "never"}};
  EXPECT_TRUE(has(problem_at(load(document), "routes[0].outside"), "payload.format"));
}

TEST(PayloadSection, KeepsAPasswordOffTheNetworkAndOutOfMessages) {
  const auto with_registry = [](const json& registry) {
    json payload = kAvro;
    payload["registry"].update(registry);
    return payload;
  };
  for (const char* const url : {"registry:8081", "https://", "ftp://registry", "https://a b",
                                "https://ann:secret@registry", "https://registry?secret"}) {
    const std::string message = problem(with_registry({{"url", url}}), ".registry.url");
    EXPECT_NE(message, "") << url;
    EXPECT_FALSE(has(message, "secret")) << message;
  }
  EXPECT_TRUE(has(problem(with_registry({{"user", "ann"}}), ".registry"), "belong together"));
  const json both = {{"user", "ann"}, {"password", "secret"}};
  EXPECT_EQ(route(with_registry(both)).payload.registry.password, "secret");
  for (const json& password : {json(4711), json(""), json(std::string(5'000, '4'))}) {
    const std::string message =
        problem(with_registry({{"user", "ann"}, {"password", password}}), ".registry.password");
    EXPECT_TRUE(has(message, "must be a string"));
    EXPECT_FALSE(has(message, "47") || has(message, "44")) << message;
  }
  json plain = with_registry(both);
  plain["registry"]["url"] = "http://registry:8081";
  EXPECT_TRUE(has(problem(plain, ".registry.password"), "unencrypted"));
}

TEST(PayloadSection, FindsASchemaBesideTheConfiguration) {
  const TemporaryFile file(with("/routes/0/payload", {{"schema", "a.json"}}).dump(), 0600);
  const Loaded loaded = load_file(file.path(), environment({}));
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_EQ(loaded.config->routes[0].payload.schema,
            std::filesystem::path(file.path()).replace_filename("a.json"));
}

}  // namespace
}  // namespace hapax::config
