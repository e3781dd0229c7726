#include "payload/json_schema.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "hapax/message.hpp"

namespace hapax::payload {
namespace {

using nlohmann::json;

std::string violation(const std::string& schema, const json& document) {
  return JsonSchema(schema).violation(document).value_or("");
}

std::string refusal(const std::string& schema) {
  try {
    JsonSchema made(schema);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

constexpr const char* kPayment = R"({
  "$schema": "http://json-schema.org/draft-07/schema#", "title": "Payment", "type": "object",
  "required": ["id", "amount_minor"],
  "properties": {
    "id": {"type": "string", "pattern": "^[a-z0-9]+$", "maxLength": 20},
    "amount_minor": {"type": "integer", "minimum": 1},
    "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}}
  },
  "definitions": {"line": {"type": "object", "properties": {"a/b": {"type": "integer"}}}}
})";

TEST(JsonSchema, NamesTheValueThatViolatesItByAPointer) {
  EXPECT_EQ(violation(kPayment, {{"id", "p1"}, {"amount_minor", 1}}), "");
  EXPECT_EQ(violation(kPayment, {{"id", "p1"}, {"amount_minor", 1.0}}), "");
  EXPECT_EQ(violation(kPayment, {{"id", "p1"}}),
            "at \"\": Missing required property 'amount_minor'.");
  EXPECT_EQ(violation(kPayment, {{"id", "p1"}, {"amount_minor", 0}}).substr(0, 20),
            "at \"/amount_minor\": ");
  EXPECT_EQ(violation(kPayment, {{"id", "P1"}, {"amount_minor", 1}}).substr(0, 10), "at \"/id\": ");
  const json lines = json::array({json::object(), {{"a/b", "x"}}});
  EXPECT_EQ(
      violation(kPayment, {{"id", "p1"}, {"amount_minor", 1}, {"lines", lines}}).substr(0, 20),
      "at \"/lines/1/a~1b\": ");
}

TEST(JsonSchema, TakesIntegersBeyondTheSignedOnesForWhatTheyAre) {
  const json largest = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(violation(R"({"type": "integer", "minimum": 0})", largest), "");
  EXPECT_NE(violation(R"({"maximum": 5})", largest), "");
  EXPECT_NE(refusal(R"({"maximum": 1e30})"), "");
}

TEST(JsonSchema, TakesAnIntegerOfAnySizeAndSpellingForOne) {
  for (const std::string integer :
       {"1e16", "1E+21", "-1e21", "12345678901234567890123", "-12345678901234567890123"}) {
    EXPECT_EQ(violation(R"({"type": "integer"})", json::parse(integer)), "") << integer;
    EXPECT_NE(violation(R"({"minimum": -5, "maximum": 5})", json::parse(integer)), "") << integer;
  }
}

TEST(JsonSchema, RefusesWhatItWouldNotCheck) {
  for (const auto& [schema, place] : std::vector<std::pair<std::string, std::string>>{
           {R"({"properties": {"a": {"minLenght": 1}}})", "/properties/a/minLenght"},
           {R"({"patternProperties": {"^a": true}})", "patternProperties"},
           {R"({"prefixItems": [true]})", "/prefixItems"},
           {R"({"allOf": [{"$ref": "#/definitions/a", "minimum": 1}],
                "definitions": {"a": true}})",
            "beside"},
           {R"({"$ref": "https://example.org/schema"})", "into this file"},
           {R"({"$ref": "#/definitions/a"})", "is no schema"},
           {R"({"$schema": "http://json-schema.org/draft-04/schema#"})", "draft-04"},
           {R"({"type": "strin"})", "strin"},
           {R"({"pattern": "(a)\\1"})", "backtracking"},
           {R"({"pattern": "ä"})", "ASCII"},
           {R"({"pattern": "^[\\u20ac\\u0024]$"})", "ASCII"},
           {R"({"pattern": "\\\\\\xe9"})", "ASCII"},
           {R"({"pattern": "^a\\cC$"})", "as \\x03, not as \\cC"},
           {R"({"pattern": "^[[:alpha:]]+$"})", "no classes such as [:alpha:]"},
           {R"({"pattern": "^[0-9]++$"})", "no quantifier behind a quantifier"},
           {R"x({"pattern": "a(?=b)"})x", "lookahead"},
           {R"({"pattern": "a)(b"})", "pattern"},
           {R"({"enum": ["a", [1234567890123456788]]})",
            "/enum\": a number must lie between -2^53"},
           {R"({"const": 9007199254740992})", "/const\": a number must lie between -2^53"},
           {R"({"type": "number", "multipleOf": 0.01})", "whole number"},
           {R"({"type": "number", "multipleOf": 5})", "needs \"type\": \"integer\""},
           {R"([])", "a schema is an object"},
           {R"({)", "is not JSON"}})
    EXPECT_NE(refusal(schema).find(place), std::string::npos) << schema << ": " << refusal(schema);
}

TEST(JsonSchema, TakesAPatternThatOnlyLooksLikeOneThatItRefuses) {
  for (const char* const pattern : {R"(\\c+)", R"([*+]+)", R"(\++)", R"([+*])", R"(a+?[:=.])",
                                    R"(\[[:]+)", R"([a[]+)", R"((?:a+)+)"})
    EXPECT_EQ(refusal(json{{"pattern", pattern}}.dump()), "") << pattern;
}

TEST(JsonSchema, TakesAPatternWithEscapesOfAscii) {
  const std::string schema = R"({"pattern": "^[\\u0041-\\x5a]\\\\ue9$"})";
  EXPECT_EQ(violation(schema, "B\\ue9"), "");
  EXPECT_NE(violation(schema, "b\\ue9"), "");
}

// Its author means no harm; a payload would.
TEST(JsonSchema, RefusesUniqueItemsThatAreNoFlag) {
  const std::string why = refusal(R"({"items": {"uniqueItems": "true"}})");
  EXPECT_NE(why.find("/items/uniqueItems\": must be true or false"), std::string::npos) << why;
}

TEST(JsonSchema, RefusesAMemberThatComesTwice) {
  EXPECT_NE(refusal(R"({"properties": {"a": {"minimum": 5, "minimum": 0}}})"), "");
}

TEST(JsonSchema, RefusesWhatAPayloadCouldKeepBusyForEver) {
  EXPECT_NE(refusal(R"({"allOf": [{"$ref": "#"}]})").find("would not end"), std::string::npos);
  const std::string branch = R"({"properties": {"n": {"$ref": "#"}}, "required": ["n"]})";
  EXPECT_NE(refusal("{\"anyOf\": [" + branch + ", " + branch + "]}").find("two ways"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"items": {"$ref": "#"}, "contains": {"$ref": "#"}})").find("two ways"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"properties": {"l": {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
                                       "r": {"$ref": "#"}}})"),
            "");
}

TEST(JsonSchema, IsNoMatchForHostileStringsAndArrays) {
  const std::string many(200'000, 'a');
  EXPECT_EQ(violation(R"({"pattern": "^(a|b)*$"})", many), "");       // no stack overflow
  EXPECT_NE(violation(R"({"pattern": "^(a+)+$"})", many + "!"), "");  // no endless backtracking
  EXPECT_NE(violation(R"({"pattern": "[a-z]+[0-9]"})", many), "");    // one pass, not one a byte
  EXPECT_EQ(violation(R"({"pattern": "b[0-9]$"})", many + "b1"), "");
  EXPECT_EQ(violation(R"({"type": "integer", "multipleOf": 5})", 15), "");
  EXPECT_NE(violation(R"({"type": "integer", "multipleOf": 5})", 16), "");
  std::vector<int> numbers(100'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_NE(violation(R"({"uniqueItems": true})", numbers).find("too long"), std::string::npos);
  EXPECT_EQ(violation(R"({"uniqueItems": true})", std::vector<int>(3000, 1)),
            "it does not conform, and is too large to tell the place");
  EXPECT_EQ(violation(R"({"items": {"type": "string"}})", numbers),
            "it does not conform, and is too large to tell the place");
  const std::string deep = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_EQ(
      violation(R"({"items": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}})", json::parse(deep)),
      "");
}

TEST(JsonSchema, OfAFileThatIsNotThereTellsWhichPath) {
  try {
    read_json_schema("/nowhere/payment.schema.json");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/payment.schema.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace hapax::payload
