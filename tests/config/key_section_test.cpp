#include <gtest/gtest.h>

#include "sample.hpp"

namespace hapax::config {
namespace {

using key::FingerprintRule;
using key::Source;
using SourceKind = Source::Kind;

key::KeySpec spec(const std::string& member, const std::string& value) {
  const auto loaded =
      load(with("/routes/0/" + member, nlohmann::json::parse(value)), {{"HEADER", "id"}});
  EXPECT_TRUE(loaded.config) << format(loaded.problems);
  return loaded.config ? loaded.config->routes.at(0).key : key::KeySpec{};
}

// What is wrong with a member of the route, at the place of it that `inside` names.
std::string problem(const std::string& member, const std::string& value,
                    const std::string& inside = "") {
  const auto loaded = load(with("/routes/0/" + member, nlohmann::json::parse(value)));
  return problem_at(loaded, "routes[0]." + member + inside);
}

TEST(KeySection, ReadsEveryFormOfASource) {
  for (const auto& [text, source] : std::vector<std::pair<std::string, Source>>{
           {R"({"header": "Id"})", {SourceKind::header, {"Id"}, false}},
           {R"({"header": "${HEADER}", "unquote": true})", {SourceKind::header, {"id"}, true}},
           {R"({"header": ["ce_source", "ce_id"]})",
            {SourceKind::header, {"ce_source", "ce_id"}, false}},
           {R"({"json": "/id"})", {SourceKind::json, {"/id"}, false}},
           {R"({"json": ["/a", "/b~1c"]})", {SourceKind::json, {"/a", "/b~1c"}, false}},
           {R"("record_key")", {SourceKind::record_key, {}, false}},
           {R"("coordinates")", {SourceKind::coordinates, {}, false}},
           {R"("content_hash")", {SourceKind::content_hash, {}, false}}}) {
    EXPECT_EQ(spec("key", text).sources, std::vector{source}) << text;
    EXPECT_EQ(spec("key", "[" + text + "]").sources, std::vector{source}) << text;
  }
}

TEST(KeySection, APositionStandsAloneAndKeepsNothingBeside) {
  EXPECT_EQ(spec("key", R"("position")").sources,
            (std::vector{Source{SourceKind::position, {}, false}}));
  EXPECT_TRUE(has(problem("key", R"(["position"])", "[0]"), R"(write "key": "position")"));
  EXPECT_TRUE(has(problem("key", R"([{"json": "/id"}, "position"])", "[1]"), "stands alone"));
  const std::string typo = problem("key", R"("positon")");
  EXPECT_TRUE(has(typo, R"(allowed: "position", "record_key")")) << typo;
  EXPECT_TRUE(has(typo, R"(did you mean "position"?)")) << typo;
  auto document = nlohmann::json::parse(with("/routes/0/key", "position").dump());
  document["routes"][0].update({{"missing_key", "coordinates"},
                                {"fingerprint", "json"},
                                {"tenant", "record_key"},
                                {"max_result_bytes", "1KiB"},
                                {"outside", {{"repeat", "never"}}}});
  const auto loaded = load(document);
  for (const char* member : {"missing_key", "fingerprint", "tenant", "max_result_bytes", "outside"})
    EXPECT_TRUE(has(problem_at(loaded, std::string("routes[0].") + member), "leave it out"))
        << member;
}

TEST(KeySection, KeepsTheOrderOfSources) {
  const auto sources = spec("key", R"([{"json": "/id"}, "record_key", "coordinates"])").sources;
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].kind, SourceKind::json);
  EXPECT_EQ(sources[1].kind, SourceKind::record_key);
  EXPECT_EQ(sources[2].kind, SourceKind::coordinates);
}

TEST(KeySection, RefusesWhatIsNoSource) {
  EXPECT_TRUE(has(problem("key", R"("recordkey")"), "did you mean \"record_key\"?"));
  EXPECT_TRUE(has(problem("key", R"("/id")"), R"({"json": "/id"})"));
  EXPECT_TRUE(has(problem("key", "7"), R"({"header": "idempotency-key"})"));
  EXPECT_TRUE(has(problem("key", "[]"), "found an empty array"));
  EXPECT_TRUE(has(problem("key", "{}"), "holds no source"));
  EXPECT_TRUE(has(problem("key", R"({"header": "a", "json": "/b"})"), "both header and json"));
  EXPECT_TRUE(has(problem("key", R"({"heder": "a"})", ".heder"), "did you mean header?"));
  EXPECT_TRUE(
      has(problem("key", R"({"json": "/a", "unquote": true})", ".unquote"), "headers only"));
  EXPECT_TRUE(has(problem("key", R"([{"json": ["/a", "b"]}])", "[0].json[1]"), "starts with '/'"));
  EXPECT_TRUE(has(problem("key", R"({"json": "/a~2"})", ".json"), "JSON pointer"));
  EXPECT_TRUE(has(problem("key", R"({"header": ""})", ".header"), "name of a header"));
  EXPECT_TRUE(has(problem("key", R"({"header": []})", ".header"), "an empty array"));
}

TEST(KeySection, RefusesSourcesThatAreNeverTried) {
  EXPECT_TRUE(has(problem("key", R"(["coordinates", "record_key"])", "[1]"), "never tried"));
  EXPECT_TRUE(has(problem("key", R"(["record_key", "record_key"])", "[1]"), "comes twice"));
}

TEST(KeySection, RefusesOneNameTwiceInAKey) {
  EXPECT_TRUE(has(problem("key", R"({"header": ["Id", "ID"]})", ".header[1]"), "comes twice"));
  EXPECT_TRUE(has(problem("key", R"({"json": ["/a", "/a"]})", ".json[1]"), "comes twice"));
  EXPECT_EQ(spec("key", R"({"json": ["/a", "/A"]})").sources[0].names.size(), 2u);
}

TEST(KeySection, ReadsTheTenantFromWhatMessagesShare) {
  EXPECT_EQ(spec("tenant", R"({"json": "/t"})").tenant, (Source{SourceKind::json, {"/t"}, false}));
  EXPECT_EQ(spec("tenant", R"("record_key")").tenant, (Source{SourceKind::record_key, {}, false}));
  EXPECT_TRUE(
      has(problem("tenant", R"("coordinates")"), R"(allowed: "record_key", {"header": "tenant"})"));
  EXPECT_FALSE(has(problem("tenant", "{}"), "coordinates"));
}

TEST(KeySection, ReadsTheFingerprintsRule) {
  using Rule = FingerprintRule::Kind;
  EXPECT_EQ(spec("fingerprint", R"("json")").fingerprint, (FingerprintRule{Rule::json, {}}));
  EXPECT_EQ(spec("fingerprint", R"({"json_without": ["/b", "/a"]})").fingerprint,
            (FingerprintRule{Rule::json_without, {"/a", "/b"}}));
  EXPECT_EQ(spec("fingerprint", R"({"json_without": "/a"})").fingerprint,
            (FingerprintRule{Rule::json_without, {"/a"}}));
  EXPECT_TRUE(has(problem("fingerprint", "{}", ".json_without"), "is missing"));
  EXPECT_TRUE(has(problem("fingerprint", R"({"json_without": [""]})", ".json_without"), "whole"));
  EXPECT_TRUE(has(problem("fingerprint", R"({"json_without": ["/a", "/a"]})", ".json_without[1]"),
                  "comes twice"));
}

TEST(KeySection, ReadsThePolicies) {
  EXPECT_EQ(spec("missing_key", R"("coordinates")").missing_key, key::MissingKey::coordinates);
  EXPECT_EQ(spec("tombstone", R"("handle")").tombstone, key::Tombstone::handle);
  EXPECT_EQ(spec("scope", R"("billing")").scope, "billing");
  EXPECT_EQ(
      problem("scope", "\"" + std::string(201, 'x') + "\""),
      "found a string of 201 bytes; allowed: the name of the operation's consumer, of at most "
      "200 bytes");
}

}  // namespace
}  // namespace hapax::config
