#include "key/canonical_json.hpp"

#include <gtest/gtest.h>

#include "key/exact_json.hpp"

namespace hapax::key {
namespace {

std::string canonical(const std::string& text, const std::vector<std::string>& without = {}) {
  return canonical_json(std::get<nlohmann::json>(parse_exact(text)), without);
}

TEST(CanonicalJson, IsOneTextForAllSpellings) {
  const std::vector<std::vector<std::string>> spellings = {
      {R"({"a":1,"b":2})", R"({ "b" : 2.0, "a" : 10e-1 })", "\n{\t\"b\":2,\r\n\"a\":1}\n"},
      {"[\"\xC3\xA9\"]", R"(["\u00e9"])", R"(["\u00E9"])"},
      {R"(["a/b"])", R"(["a\/b"])", R"(["\u0061\u002Fb"])"},
      {R"(["<>&'"])", R"(["\u003c\u003e\u0026\u0027"])"},
      {"[\"\xE2\x80\xA8\"]", R"(["\u2028"])"},
      {"[\"\xF0\x9F\x92\xB8\"]", R"(["\uD83D\uDCB8"])", R"(["\ud83d\udcb8"])"},
      {R"(["\b\t\n\f\r\"\\"])", R"(["\u0008\u0009\u000a\u000C\u000d\u0022\u005c"])"},
      {R"(["\u0000\u001f\u007f"])", "[\"\\u0000\\u001F\x7f\"]"},
      {R"(["\u0080\u009f"])", "[\"\xC2\x80\xC2\x9F\"]"},
      {"[\"\xC2\xA0\"]", R"(["\u00a0"])"},
      {R"({"a":[{"x":[],"y":{}}],"b":null,"c":true})",
       R"({"c":true,"b":null,"a":[{"y":{},"x":[]}]})"},
  };
  for (const auto& group : spellings)
    for (const std::string& spelling : group)
      EXPECT_EQ(canonical(spelling), group.front()) << spelling;
}

TEST(CanonicalJson, KeepsDifferentDocumentsApart) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"[1,2]", "[2,1]"},
      {"{}", R"({"a":null})"},
      {"1", "\"1\""},
      {"true", "\"true\""},
      {"null", "\"\""},
      {"[]", "{}"},
      {"[[]]", "[]"},
      {"9007199254740992", "9007199254740993"},
      {"[\"\xC3\xA9\"]", "[\"e\xCC\x81\"]"},
      {R"(["A\u0000B"])", R"(["AB"])"},
      {R"(["\\u0000"])", R"(["\u0000"])"},
      {R"(["a,b"])", R"(["a","b"])"},
      {R"({"a":{"b":1}})", R"({"a":{},"b":1})"},
  };
  for (const auto& [a, b] : pairs) EXPECT_NE(canonical(a), canonical(b));
}

// RFC 8785 sorts by UTF-16 units, by which U+1F4B8 (D83D…) comes before U+FB33.
TEST(CanonicalJson, SortsMembersByTheBytesOfTheirNames) {
  EXPECT_EQ(
      canonical(
          "{\"\xF0\x9F\x92\xB8\":1,\"\xEF\xAC\xB3\":2,\"b\":3,\"B\":4,\"\":5,\"10\":6,\"1\":7}"),
      "{\"\":5,\"1\":7,\"10\":6,\"B\":4,\"b\":3,\"\xEF\xAC\xB3\":2,\"\xF0\x9F\x92\xB8\":1}");
}

TEST(CanonicalJson, LeavesOutWhatThePointersName) {
  const std::string event = R"({"id":7,"sent_at":1,"source":{"ts_ms":2,"lsn":9}})";
  EXPECT_EQ(canonical(event, {"/sent_at", "/source/ts_ms"}), R"({"id":7,"source":{"lsn":9}})");
  EXPECT_EQ(canonical(event, {"/source"}), R"({"id":7,"sent_at":1})");
  EXPECT_EQ(canonical(event, {"/absent", "/source/ts_ms/deeper"}), canonical(event));
  EXPECT_EQ(canonical(event, {"/source", "/source/lsn", "/sent_at", "/id"}), "{}");
}

TEST(CanonicalJson, LeavesOutElementsByTheirPlaceInTheWholeArray) {
  EXPECT_EQ(canonical("[1,2,3]", {"/1"}), "[1,3]");
  EXPECT_EQ(canonical("[1,2,3]", {"/0", "/1"}), "[3]");
  EXPECT_EQ(canonical("[1,2,3]", {"/-", "/3", "/01"}), "[1,2,3]");
  EXPECT_EQ(canonical(R"([{"a":1,"b":2}])", {"/0/a"}), R"([{"b":2}])");
}

TEST(CanonicalJson, NeverLeavesOutTheWholeDocument) {
  EXPECT_EQ(canonical(R"({"a":1})", {""}), R"({"a":1})");
}

TEST(CanonicalJson, IsItsOwnCanonicalText) {
  const std::string text = canonical(R"({"z":[1.50,"\u0001\u0085é"],"a":{"k":-0.0,"e":1e-30}})");
  EXPECT_EQ(canonical(text), text);
}

}  // namespace
}  // namespace hapax::key
