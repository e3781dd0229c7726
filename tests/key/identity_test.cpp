#include "key/identity.hpp"

#include <gtest/gtest.h>

#include "key/key_text.hpp"
#include "key/sample_message.hpp"
#include "key/sha256.hpp"

namespace hapax::key {
namespace {

using std::string_literals::operator""s;

Source header(std::vector<std::string> names) {
  return {Source::Kind::header, std::move(names), false};
}
Source unquoting(std::string name) { return {Source::Kind::header, {std::move(name)}, true}; }
Source json(std::vector<std::string> names) {
  return {Source::Kind::json, std::move(names), false};
}
Source kind(Source::Kind kind) { return {kind, {}, false}; }

KeySpec spec(std::vector<Source> sources) {
  KeySpec spec;
  spec.scope = "payments";
  spec.sources = std::move(sources);
  return spec;
}

Derived derive(const KeySpec& spec, const SampleMessage& sample, std::int32_t generation = 0) {
  return sample.with([&](const Message& message) { return identify(spec, message, generation); });
}

// The key as stored, or the reason of the refusal in angle brackets.
std::string key_of(const KeySpec& spec, const SampleMessage& sample) {
  const Derived derived = derive(spec, sample);
  if (const auto* identity = std::get_if<Identity>(&derived)) return identity->key;
  if (const auto* refusal = std::get_if<Refusal>(&derived)) return "<" + refusal->reason + ">";
  return "<skipped>";
}

SampleMessage payload(std::string text) { return {.payload = std::move(text)}; }
SampleMessage headers(std::vector<std::pair<std::string, std::optional<std::string>>> list) {
  return {.headers = std::move(list)};
}

TEST(Identity, TakesTheFirstSourceThatIsThere) {
  const KeySpec both =
      spec({header({"idempotency-key"}), json({"/id"}), kind(Source::Kind::record_key)});
  EXPECT_EQ(key_of(both, {.headers = {{"idempotency-key", "h"}}, .payload = R"({"id":"j"})"}), "h");
  EXPECT_EQ(key_of(both, {.payload = R"({"id":"j"})", .record_key = "r"}), "j");
  EXPECT_EQ(key_of(both, {.payload = R"({"id":null})", .record_key = "r"}), "r");
  EXPECT_EQ(key_of(both, payload("{}")), "<missing_key>");
}

TEST(Identity, RefusesAnEmptyValueAndAsksNoFurtherSource) {
  const auto later = kind(Source::Kind::coordinates);
  EXPECT_EQ(key_of(spec({header({"k"}), later}), headers({{"k", ""}})), "<missing_key>");
  EXPECT_EQ(key_of(spec({unquoting("k"), later}), headers({{"k", "\"\""}})), "<missing_key>");
  for (const std::string empty : {R"({"id":""})", R"({"id":[]})", R"({"id":{}})"})
    EXPECT_EQ(key_of(spec({json({"/id"}), later}), payload(empty)), "<missing_key>") << empty;
  EXPECT_EQ(key_of(spec({kind(Source::Kind::record_key), later}), {.record_key = ""}),
            "<missing_key>");
  EXPECT_EQ(key_of(spec({kind(Source::Kind::content_hash), later}), payload("")), "<missing_key>");
  KeySpec lenient = spec({header({"k"})});
  lenient.missing_key = MissingKey::coordinates;
  EXPECT_EQ(key_of(lenient, headers({{"k", ""}})), "<missing_key>");
}

TEST(Identity, FindsHeadersWithoutRegardToAsciiCase) {
  EXPECT_EQ(key_of(spec({header({"Idempotency-Key"})}), headers({{"iDEMPOTENCY-kEY", "1"}})), "1");
  EXPECT_EQ(key_of(spec({header({"k\xC3\xA9"})}), headers({{"k\xC3\x89", "1"}})), "<missing_key>");
  EXPECT_EQ(key_of(spec({header({"key"})}), headers({{"key2", "1"}, {"ke", "2"}, {"", "3"}})),
            "<missing_key>");
}

TEST(Identity, TakesARepeatedHeaderOnlyIfItAgreesWithItself) {
  const KeySpec by_header = spec({header({"k"}), kind(Source::Kind::coordinates)});
  EXPECT_EQ(key_of(by_header, headers({{"k", "1"}, {"x", "2"}, {"K", "1"}})), "1");
  EXPECT_EQ(key_of(by_header, headers({{"k", "1"}, {"K", "2"}})), "<ambiguous_key>");
  EXPECT_EQ(key_of(by_header, headers({{"k", ""}, {"k", "1"}})), "<ambiguous_key>");
  EXPECT_EQ(key_of(by_header, headers({{"k", "1"}, {"k", "1"}, {"k", "1\0"s}})), "<ambiguous_key>");
}

TEST(Identity, HoldsANullHeaderForAbsent) {
  EXPECT_EQ(
      key_of(spec({header({"k"}), header({"l"})}), headers({{"k", std::nullopt}, {"l", "2"}})),
      "2");
  EXPECT_EQ(key_of(spec({header({"k"})}), headers({{"k", std::nullopt}, {"k", "1"}})), "1");
}

TEST(Identity, TakesQuotesOffOnlyIfToldTo) {
  EXPECT_EQ(key_of(spec({header({"k"})}), headers({{"k", "\"8e03\""}})), "\"8e03\"");
  const KeySpec by_content = spec({unquoting("k")});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\"8e03\"", "8e03"},     {"8e03", "8e03"},     {R"("a\"b\\c")", R"(a"b\c)"},
      {"\"a\"b\"", "\"a\"b\""}, {"\"", "\""},         {R"("a\")", R"("a\")"},
      {R"("\n")", R"("\n")"},   {" \"a\"", " \"a\""}, {"\"\xC3\xA9\"", "\"\xC3\xA9\""}};
  for (const auto& [value, key] : cases)
    EXPECT_EQ(key_of(by_content, headers({{"k", value}})), key);
  EXPECT_EQ(key_of(by_content, headers({{"k", "\"a\""}, {"k", "a"}})), "a");
}

TEST(Identity, JoinsAllPartsOrNone) {
  const KeySpec cloud_events =
      spec({header({"ce_source", "ce_id"}), kind(Source::Kind::record_key)});
  const auto with = [&](std::vector<std::pair<std::string, std::optional<std::string>>> list) {
    return key_of(cloud_events, {.headers = std::move(list), .record_key = "r"});
  };
  EXPECT_EQ(with({{"ce_id", "7"}, {"ce_source", "/a"}}), R"(:("/a","7"))");
  EXPECT_EQ(with({{"ce_id", "7"}}), "r");
  EXPECT_EQ(with({{"ce_source", "/a"}, {"ce_id", std::nullopt}}), "r");
  EXPECT_EQ(with({{"ce_source", "/a"}, {"ce_id", ""}}), "<missing_key>");
  EXPECT_EQ(with({{"ce_id", ""}}), "r");  // incomplete, so not this message's source
  EXPECT_EQ(with({{"ce_id", "1"}, {"ce_id", "2"}}), "<ambiguous_key>");
}

TEST(Identity, TellsTypesApart) {
  const KeySpec by_id = spec({json({"/id"})});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"id":1})", ":1"},
      {R"({"id":"1"})", "1"},
      {R"({"id":1.0})", ":1"},
      {R"({"id":0})", ":0"},
      {R"({"id":false})", ":false"},
      {R"({"id":"false"})", "false"},
      {R"({"id":12.50})", ":12.5"},
      {R"({"id":[1,"a"]})", R"(:[1,"a"])"},
      {R"({"id":{"b":1,"a":2}})", R"(:{"a":2,"b":1})"},
      {R"({"id":"a\u0000b"})", R"(:"a\x00b")"},
      {R"({"id":9007199254740993})", ":9007199254740993"},
      {R"({"id":9007199254740992})", ":9007199254740992"}};
  for (const auto& [text, key] : cases) EXPECT_EQ(key_of(by_id, payload(text)), key) << text;
  const KeySpec composite = spec({json({"/a", "/b"})});
  EXPECT_EQ(key_of(composite, payload(R"({"a":"x","b":1})")), R"(:("x",1))");
  EXPECT_EQ(key_of(composite, payload(R"({"a":"x","b":"1"})")), R"(:("x","1"))");
}

TEST(Identity, GivesTheSameTextOneKeyWhereverItComesFrom) {
  for (const std::string& text : {"8e03"s, ":odd"s, "a\0b"s, std::string(500, 'k')}) {
    const std::string escaped = nlohmann::json{{"id", text}}.dump();
    EXPECT_EQ(key_of(spec({header({"k"})}), headers({{"k", text}})), encode_key(text));
    EXPECT_EQ(key_of(spec({json({"/id"})}), payload(escaped)), encode_key(text));
    EXPECT_EQ(key_of(spec({kind(Source::Kind::record_key)}), {.record_key = text}),
              encode_key(text));
  }
}

TEST(Identity, ReadsThePayloadAsJsonOnlyIfItIsAsked) {
  const KeySpec mixed = spec({header({"k"}), json({"/id"}), kind(Source::Kind::record_key)});
  EXPECT_EQ(key_of(mixed, {.headers = {{"k", "h"}}, .payload = "not json"}), "h");
  EXPECT_EQ(key_of(mixed, {.payload = "not json", .record_key = "r"}), "<not_json>");
  EXPECT_EQ(key_of(mixed, {.payload = "", .record_key = "r"}), "<not_json>");
  EXPECT_EQ(key_of(mixed, {.payload = "[1]", .record_key = "r"}), "r");
  KeySpec printed = mixed;
  printed.fingerprint.kind = FingerprintRule::Kind::json;
  EXPECT_EQ(key_of(printed, {.headers = {{"k", "h"}}, .payload = "[1,2"}), "<not_json>");
}

TEST(Identity, NamesTheByteThatIsNotJson) {
  const Derived derived = derive(spec({json({"/id"})}), payload("{\"id\": x}"));
  EXPECT_NE(std::get<Refusal>(derived).detail.find("byte 8"), std::string::npos);
}

TEST(Identity, NamesTheSourcesItLookedFor) {
  const Derived derived = derive(spec({header({"k", "l"}), json({"/id"})}), payload("{}"));
  EXPECT_EQ(std::get<Refusal>(derived).detail,
            "the message has none of the key's sources: header 'k' and 'l', JSON pointer '/id'");
}

TEST(Identity, FallsBackToCoordinatesIfTheRouteWantsIt) {
  KeySpec lenient = spec({header({"k"})});
  lenient.missing_key = MissingKey::coordinates;
  EXPECT_EQ(key_of(lenient, {}), R"(:at("payments",0,3,42))");
  EXPECT_EQ(key_of(spec({kind(Source::Kind::coordinates)}), {}), R"(:at("payments",0,3,42))");
}

TEST(Identity, TellsTheCoordinatesOfARecreatedTopicApart) {
  const KeySpec by_place = spec({kind(Source::Kind::coordinates)});
  EXPECT_EQ(std::get<Identity>(derive(by_place, {}, 1)).key, R"(:at("payments",1,3,42))");
  EXPECT_NE(key_of(by_place, {.topic = "payments\",0,3"}), key_of(by_place, {.topic = "payments"}));
}

TEST(Identity, NamesContentByItsHash) {
  const KeySpec by_content =
      spec({kind(Source::Kind::content_hash), kind(Source::Kind::record_key)});
  EXPECT_EQ(key_of(by_content, payload("abc")), ":content(\"" + hex(sha256("abc")) + "\")");
  KeySpec handling = by_content;
  handling.tombstone = Tombstone::handle;
  EXPECT_EQ(key_of(handling, {.payload = std::nullopt, .record_key = "r"}), "r");
}

TEST(Identity, TakesTheTenantByTheSameRules) {
  KeySpec tenanted = spec({header({"k"})});
  EXPECT_EQ(std::get<Identity>(derive(tenanted, headers({{"k", "1"}}))).tenant, "");
  tenanted.tenant = json({"/tenant"});
  const auto with = [&](std::string text) {
    const Derived derived = derive(tenanted, {.headers = {{"k", "1"}}, .payload = std::move(text)});
    const auto* identity = std::get_if<Identity>(&derived);
    return identity != nullptr ? identity->tenant : "<" + std::get<Refusal>(derived).reason + ">";
  };
  EXPECT_EQ(with(R"({"tenant":"acme"})"), "acme");
  EXPECT_EQ(with(R"({"tenant":7})"), ":7");
  EXPECT_EQ(with("{}"), "<missing_tenant>");
  EXPECT_EQ(with(R"({"tenant":null})"), "<missing_tenant>");
  EXPECT_EQ(with(R"({"tenant":""})"), "<missing_tenant>");
  EXPECT_EQ(with("nope"), "<not_json>");
  tenanted.tenant = header({"t"});
  EXPECT_EQ(key_of(tenanted, headers({{"k", "1"}, {"t", "a"}, {"T", "b"}})), "<ambiguous_tenant>");
}

TEST(Identity, TreatsTombstonesByThePolicyOfTheRoute) {
  KeySpec route = spec({json({"/id"}), kind(Source::Kind::record_key)});
  const SampleMessage tombstone{.payload = std::nullopt, .record_key = "r"};
  EXPECT_EQ(key_of(route, tombstone), "<tombstone>");
  route.tombstone = Tombstone::skip;
  EXPECT_EQ(key_of(route, tombstone), "<skipped>");
  EXPECT_EQ(key_of(route, {.payload = "{}", .record_key = "r"}), "r");
  route.tombstone = Tombstone::handle;
  EXPECT_EQ(key_of(route, tombstone), "r");
}

}  // namespace
}  // namespace hapax::key
