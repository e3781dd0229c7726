#include "key/exact_json.hpp"

#include <gtest/gtest.h>

#include "hapax/message.hpp"
#include "key/canonical_json.hpp"

namespace hapax::key {
namespace {

using std::string_literals::operator""s;

// The sentence, or "" if the text was accepted.
std::string why_not(const std::string& text) {
  const auto parsed = parse_exact(text);
  const auto* error = std::get_if<NotJson>(&parsed);
  return error != nullptr ? error->why : "";
}

bool says(const std::string& text, const std::string& part) {
  return why_not(text).find(part) != std::string::npos;
}

TEST(ExactJson, TakesJson) {
  for (const std::string text : {"{}", "[]", " 1 ", "\"\"", "null", "true", "-0", "1e-400",
                                 "[[],{}]", R"("\ud83d\udcb8")", R"({"":{"":0}})", R"("\u0000")",
                                 "\"\x7f\"", "123456789012345678901234567890", "\xEF\xBB\xBF{}"})
    EXPECT_EQ(why_not(text), "") << text;
}

TEST(ExactJson, RefusesWhatIsNotJson) {
  for (const std::string text : {"",
                                 " ",
                                 "{",
                                 "[1,]",
                                 "{\"a\":1,}",
                                 "nul",
                                 "NaN",
                                 "Infinity",
                                 "01",
                                 "+1",
                                 "1.",
                                 ".5",
                                 "1e",
                                 "'a'",
                                 "\"a",
                                 "[1] 2",
                                 "{a:1}",
                                 "// c\n1",
                                 "1 /* c */",
                                 "\"\t\"",
                                 R"("\x41")",
                                 R"("\u12g4")",
                                 R"("\ud800")",
                                 R"("\ud800\ud800")",
                                 "\"\xED\xA0\x80\"",
                                 "\"\xC0\x80\"",
                                 "\"\xF4\x90\x80\x80\"",
                                 "\"\xE9\"",
                                 "\xFF\xFE",
                                 "\"\xC3"})
    EXPECT_NE(why_not(text), "") << text;
}

// nlohmann alone ends at a NUL and calls `{"a":1}` all there was.
TEST(ExactJson, RefusesANulByteAndWhatIsBehindIt) {
  EXPECT_TRUE(says("{\"a\":1}\0 and more"s, "byte 8"));
  EXPECT_TRUE(says("1\0"s, "byte 2"));
  EXPECT_TRUE(says("\"a\0b\""s, "byte 3"));
}

TEST(ExactJson, NamesTheByteButNotThePayload) {
  EXPECT_TRUE(says("[1,2,x]", "byte 6"));
  EXPECT_FALSE(says("[\"secret\" \"secret\"]", "secret"));
}

TEST(ExactJson, RefusesAMemberNameThatComesTwice) {
  EXPECT_TRUE(says(R"({"a":1,"a":2})", "twice"));
  EXPECT_TRUE(says(R"({"a":1,"\u0061":1})", "twice"));
  EXPECT_TRUE(says(R"([{"b":{"a":{},"c":1,"a":[]}}])", "twice"));
  EXPECT_EQ(why_not(R"({"a":{"a":1},"b":{"a":1},"A":1})"), "");
}

TEST(ExactJson, RefusesNumbersBeyondADouble) {
  EXPECT_TRUE(says("1e400", "too large"));
  EXPECT_TRUE(says(std::string(400, '9'), "too large"));
  EXPECT_TRUE(says("1e-1000000000000000000", "exponent"));
}

TEST(ExactJson, CapsNestingAtTheLevelThatTheMessageHas) {
  const auto nested = [](std::size_t depth, const std::string& open, const std::string& close) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_EQ(why_not(nested(kMaxJsonDepth, "[", "]")), "");
  EXPECT_EQ(why_not(nested(kMaxJsonDepth, "{\"a\":", "}")), "");
  EXPECT_TRUE(says(nested(kMaxJsonDepth + 1, "[", "]"), "nests deeper"));
  EXPECT_TRUE(says(nested(kMaxJsonDepth + 1, "{\"a\":", "}"), "nests deeper"));
  EXPECT_TRUE(says(std::string(100'000, '['), "nests deeper"));
  EXPECT_EQ(why_not("[" + nested(400, "[", "]") + "," + nested(400, "[", "]") + "]"), "");
}

TEST(ExactJson, BuildsTheDocumentThatNlohmannBuilds) {
  const std::string text =
      R"({"b":[1,-2,[],{},"x",null,true,[[3,{"z":4}],5]],"a":{"c":{"d":"e"},"f":[6]},"g":7})";
  EXPECT_EQ(std::get<nlohmann::json>(parse_exact(text)), nlohmann::json::parse(text));
}

TEST(ExactJson, KeepsNumbersExact) {
  const auto text = [](const std::string& number) {
    return number_text(std::get<nlohmann::json>(parse_exact(number)));
  };
  EXPECT_EQ(text("9007199254740993"), "9007199254740993");
  EXPECT_EQ(text("18446744073709551617"), "18446744073709551617");
  EXPECT_EQ(text("-9223372036854775809"), "-9223372036854775809");
  EXPECT_EQ(text("18446744073709551615"), text("18446744073709551615.0"));
  EXPECT_EQ(text("-9223372036854775808"), text("-9223372036854775808e0"));
  EXPECT_EQ(text("10000000000000000000"), text("1e19"));
  EXPECT_EQ(text("-0"), text("0.0"));
  EXPECT_EQ(text("0.1"), "0.1");
}

}  // namespace
}  // namespace hapax::key
