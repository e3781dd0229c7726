#include "key/json_pointer.hpp"

#include <gtest/gtest.h>

namespace hapax::key {
namespace {

TEST(JsonPointer, TellsPointersFromOtherText) {
  for (const std::string pointer : {"", "/", "/a", "/a/b", "//", "/~0", "/~1", "/~01", "/a~1b~0",
                                    "/-", "/0", "/ ", "/\"", "/\xC3\xA9", "/a//b/"})
    EXPECT_EQ(json_pointer_error(pointer), std::nullopt) << pointer;
  for (const std::string text :
       {"a", "a/b", "#", "#/a", " /a", "/~", "/~2", "/a~", "/~a/b", "/~~", "0"})
    EXPECT_NE(json_pointer_error(text), std::nullopt) << text;
}

TEST(JsonPointer, FollowsTheExamplesOfTheRfc) {
  const auto document = nlohmann::json::parse(
      R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"i\\j":5,"k\"l":6," ":7,"m~n":8,"~1":9})");
  const std::vector<std::pair<std::string, nlohmann::json>> cases = {
      {"", document},    {"/foo", {"bar", "baz"}},
      {"/foo/0", "bar"}, {"/foo/1", "baz"},
      {"/", 0},          {"/a~1b", 1},
      {"/c%d", 2},       {"/i\\j", 5},
      {"/k\"l", 6},      {"/ ", 7},
      {"/m~0n", 8},      {"/~01", 9}};
  for (const auto& [pointer, expected] : cases) {
    ASSERT_NE(find(document, pointer), nullptr) << pointer;
    EXPECT_EQ(*find(document, pointer), expected) << pointer;
  }
}

TEST(JsonPointer, NamesNothingIfThereIsNothing) {
  const auto document = nlohmann::json::parse(R"({"a":[1,2,{"b":null}],"s":"text","1":{"":3}})");
  for (const std::string pointer :
       {"/b", "/a/3", "/a/-", "/a/00", "/a/01", "/a/+1", "/a/-1", "/a/1e0", "/a/ 1", "/a/",
        "/a/18446744073709551616", "/a/b", "/s/0", "/a/0/0", "/A", "/1/x", "/a/2/b/c", "a", "/~"})
    EXPECT_EQ(find(document, pointer), nullptr) << pointer;
  EXPECT_NE(find(document, "/a/2/b"), nullptr);  // null is there
  EXPECT_EQ(*find(document, "/1/"), 3);
}

TEST(JsonPointer, AStarIsAnyMemberAndAnyElement) {
  const auto named = [](std::string_view pattern) {
    auto document = nlohmann::json::parse(
        R"({"a":[{"b":1},{"b":2},3],"o":{"x":{"b":4},"y":{"c":5}},"*":{"b":6},"~1":{"b":7}})");
    std::string values;
    for_each_match(document, pattern, [&](nlohmann::json& value) {
      values += value.dump();
      value = nullptr;
    });
    return values;
  };
  EXPECT_EQ(named("/a/*/b"), "12");
  EXPECT_EQ(named("/a/1/b"), "2");
  EXPECT_EQ(named("/a/*"), R"({"b":1}{"b":2}3)");
  EXPECT_EQ(named("/o/*/b"), "4");
  EXPECT_EQ(named("/*/b"), "67");
  EXPECT_EQ(named("/*/*/b"), "124");
  EXPECT_EQ(named("/~01/b"), "7");
  EXPECT_EQ(named("").size(), 80U);  // the whole document
  for (const char* nothing : {"/a/*/b/*", "/a/*/d", "/**", "/a/-", "*", "/~*"})
    EXPECT_EQ(named(nothing), "") << nothing;
}

}  // namespace
}  // namespace hapax::key
