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

TEST(JsonPointer, NamesNothingWhereThereIsNothing) {
  const auto document = nlohmann::json::parse(R"({"a":[1,2,{"b":null}],"s":"text","1":{"":3}})");
  for (const std::string pointer :
       {"/b", "/a/3", "/a/-", "/a/00", "/a/01", "/a/+1", "/a/-1", "/a/1e0", "/a/ 1", "/a/",
        "/a/18446744073709551616", "/a/b", "/s/0", "/a/0/0", "/A", "/1/x", "/a/2/b/c", "a", "/~"})
    EXPECT_EQ(find(document, pointer), nullptr) << pointer;
  EXPECT_NE(find(document, "/a/2/b"), nullptr);  // null is there
  EXPECT_EQ(*find(document, "/1/"), 3);
}

}  // namespace
}  // namespace hapax::key
