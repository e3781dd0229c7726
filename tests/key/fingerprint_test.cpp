#include <gtest/gtest.h>

#include "key/identity.hpp"
#include "key/sample_message.hpp"
#include "key/sha256.hpp"

namespace hapax::key {
namespace {

using Kind = FingerprintRule::Kind;

std::variant<Fingerprint, Refusal> print(const FingerprintRule& rule,
                                         std::optional<std::string> payload) {
  return SampleMessage{.payload = std::move(payload)}.with(
      [&](const Message& message) { return fingerprint(rule, message); });
}

std::string digest(const FingerprintRule& rule, std::optional<std::string> payload) {
  return hex(std::get<Fingerprint>(print(rule, std::move(payload))).digest);
}

TEST(Fingerprint, OfThePayloadIsTheSha256OfItsBytes) {
  const FingerprintRule raw{};
  EXPECT_EQ(digest(raw, "abc"), hex(sha256("abc")));
  EXPECT_NE(digest(raw, R"({"a":1})"), digest(raw, R"({"a": 1})"));
  EXPECT_EQ(digest(raw, "\xFF not json"), hex(sha256("\xFF not json")));
}

TEST(Fingerprint, OfJsonIsTheSameForAllSpellings) {
  const FingerprintRule json{Kind::json, {}};
  EXPECT_EQ(digest(json, R"({"a":1,"b":"\u00e9"})"),
            digest(json, "{ \"b\":\"\xC3\xA9\", \"a\":1.0 }"));
  EXPECT_NE(digest(json, R"({"a":1})"), digest(json, R"({"a":2})"));
  EXPECT_EQ(digest(json, "{ }"), hex(sha256("{}")));  // holds the stored form still
}

TEST(Fingerprint, WithoutPointersSeesAllTheRest) {
  const FingerprintRule rule{Kind::json_without, {"/sent_at", "/source/ts_ms"}};
  const std::string first = R"({"id":1,"sent_at":5,"source":{"ts_ms":1,"lsn":7}})";
  EXPECT_EQ(digest(rule, first),
            digest(rule, R"({"id":1,"sent_at":6,"source":{"ts_ms":2,"lsn":7}})"));
  EXPECT_NE(digest(rule, first),
            digest(rule, R"({"id":1,"sent_at":5,"source":{"ts_ms":1,"lsn":8}})"));
  EXPECT_NE(digest(rule, first),
            digest(rule, R"({"id":2,"sent_at":5,"source":{"ts_ms":1,"lsn":7}})"));
}

TEST(Fingerprint, TellsNullFromEmptyFromTheEmptyStringUnderEveryRule) {
  for (const FingerprintRule& rule : {FingerprintRule{}, FingerprintRule{Kind::json, {}},
                                      FingerprintRule{Kind::json_without, {"/a"}}}) {
    EXPECT_NE(digest(rule, std::nullopt), digest(rule, ""));
    EXPECT_NE(digest(rule, ""), digest(rule, "\"\""));
    EXPECT_NE(digest(rule, std::nullopt), digest(rule, "\"\""));
    EXPECT_NE(digest(rule, std::nullopt), digest(rule, "null"));
  }
}

TEST(Fingerprint, OfWhatIsNotJsonIsRefusedIfTheRuleNeedsJson) {
  for (const std::string payload : {" ", "{", "{\"a\":1,\"a\":1}"})
    EXPECT_EQ(std::get<Refusal>(print({Kind::json, {}}, payload)).reason, "not_json") << payload;
}

TEST(Fingerprint, OfAnotherRuleIsMadeAgainAndWhatItRefusesDiffers) {
  const FingerprintRule json{Kind::json, {}};
  const KeySpec spec;  // the payload's bytes
  const Fingerprint stored = std::get<Fingerprint>(print(json, R"({"a":1})"));
  const auto same = [&](const std::string& payload) {
    return SampleMessage{.payload = payload}.with([&](const Message& message) {
      return same_payload(spec, message, std::get<Fingerprint>(print({}, payload)), stored);
    });
  };
  EXPECT_TRUE(same(R"({ "a": 1 })"));
  EXPECT_FALSE(same(R"({"a":2})"));
  EXPECT_FALSE(same("no JSON"));
}

TEST(Fingerprint, CarriesTheIdOfItsRule) {
  EXPECT_EQ(std::get<Fingerprint>(print({}, "x")).rule, "payload");
  EXPECT_EQ(std::get<Fingerprint>(print({Kind::json, {}}, "1")).rule, "json-1");
  EXPECT_EQ(std::get<Fingerprint>(print({Kind::json, {}}, std::nullopt)).rule, "json-1");
}

TEST(Fingerprint, HasOneRuleIdForEachListOfPointers) {
  const auto id = [](std::vector<std::string> without) {
    return rule_id({Kind::json_without, std::move(without)});
  };
  EXPECT_EQ(id({"/a", "/b"}), id({"/a", "/b"}));
  EXPECT_NE(id({"/a", "/b"}), id({"/a/b"}));
  EXPECT_NE(id({"/a", "/b"}), id({"/a\",\"/b"}));
  EXPECT_NE(id({}), rule_id({Kind::json, {}}));
}

}  // namespace
}  // namespace hapax::key
