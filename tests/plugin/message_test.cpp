// Payloads as types of the handler's author.
#include "hapax/message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace hapax {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Item {
  std::string what;
  int count = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Item, what, count)

struct Order {
  std::string id;
  std::int64_t amount = 0;
  std::uint64_t number = 0;
  double rate = 0;
  bool express = false;
  std::vector<Item> items;
  std::map<std::string, std::int16_t> votes;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Order, id, amount, number, rate, express, items,
                                                votes)

struct ReadOnly {
  int count = 0;
};
void from_json(const nlohmann::json& json, ReadOnly& into) { json.at("count").get_to(into.count); }

struct Basket {
  Order first;  // none of its members must be there
  Item one;
  std::vector<Item> more;
  std::string id;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Basket, first, one, more, id)

template <class T>
T as(const std::string& payload) {
  Message::Parts parts;
  parts.payload = payload;
  return Message(parts).as<T>();
}

template <class T>
std::string refusal(const std::string& payload) {
  try {
    as<T>(payload);
  } catch (const BadPayload& error) {
    return error.what();
  }
  return "taken";
}

TEST(TypedPayload, IsRead) {
  const auto order = as<Order>(
      R"({"id": "o1", "amount": 1250.0, "number": 18446744073709551615, "rate": 0.1, "express": true,
          "items": [{"what": "pen", "count": -3, "more": 1.5}], "votes": {"a": 7}, "other": 2.5})");
  EXPECT_EQ(order.id, "o1");
  EXPECT_EQ(order.amount, 1250);
  EXPECT_EQ(order.number, 18446744073709551615U);
  EXPECT_EQ(order.rate, 0.1);
  EXPECT_TRUE(order.express);
  EXPECT_EQ(order.items.at(0).count, -3);
  EXPECT_EQ(order.votes.at("a"), 7);
  EXPECT_EQ(as<ReadOnly>(R"({"count": 12})").count, 12);
}

TEST(TypedPayload, ThatDoesNotFitNamesTheMember) {
  EXPECT_THAT(refusal<Item>(R"({"what": "pen"})"), HasSubstr("key 'count' not found"));
  EXPECT_THAT(refusal<Item>(R"({"what": 1, "count": 1})"),
              AllOf(HasSubstr("does not fit at \"/what\""), HasSubstr("must be string")));
  EXPECT_THAT(refusal<Order>(R"({"express": "yes"})"), HasSubstr("does not fit at \"/express\""));
  EXPECT_THAT(refusal<Item>("[]"), HasSubstr("does not fit"));
  EXPECT_THAT(refusal<Item>("{"), HasSubstr("is not JSON"));
  EXPECT_THROW(Message(Message::Parts()).as<Item>(), BadPayload);
}

TEST(TypedPayload, ThatDoesNotFitNamesThePlaceInArraysMapsAndMembers) {
  const std::map<std::string, std::string> orders = {
      {R"({"items": [{"what": "a", "count": 1}, {"what": 1, "count": 1}, {"what": 1, "count": 1}]})",
       R"(at "/items/1/what": [json.exception.type_error.302])"},
      {R"({"items": [{"what": "a", "count": 1}, {"what": "b"}, {"what": "c"}]})",
       R"(at "/items/1/count": [json.exception.out_of_range.403])"},
      {R"({"id": "o", "items": [{"what": "a", "count": 1}, 7]})", R"(at "/items/1": )"},
      {R"({"items": {"what": 1}})", R"(at "/items": )"},
      {R"({"votes": {"a": 1, "b/c": "2", "d": "3"}})", R"(at "/votes/b~1c": )"}};
  for (const auto& [payload, place] : orders)
    EXPECT_THAT(refusal<Order>(payload), HasSubstr(place)) << payload;
  // Each has members before and behind the place that have, or lack, the same as it does.
  const std::map<std::string, std::string> baskets = {
      {R"({"first": {}, "one": {"what": "a"}, "more": [{}], "id": "b"})", R"(at "/one/count": )"},
      {R"({"first": {}, "one": {"count": 1, "what": 1}, "more": [1], "id": 2})",
       R"(at "/one/what": )"},
      {R"({"first": {}, "one": {"what": "a", "count": 1}, "more": []})", R"(at "/id": )"},
      {R"({"first": {"items": [{"what": "a", "count": 1}]}, "id": "b", "more": []})",
       R"(at "/one": )"},
      {R"({"first": [], "id": "b"})", R"(at "/first": )"}};
  for (const auto& [payload, place] : baskets)
    EXPECT_THAT(refusal<Basket>(payload), HasSubstr(place)) << payload;
  EXPECT_THAT(refusal<ReadOnly>(R"({"count": "many"})"), HasSubstr(R"(at "/count": )"));
  EXPECT_THAT((refusal<std::map<std::string, ReadOnly>>(R"({"a": {"count": 1}, "b": {}})")),
              HasSubstr(R"(at "/b/count": )"));
}

TEST(TypedPayload, ThatIsLongNamesThePlaceTooOrNoneAtAll) {
  nlohmann::json items = nlohmann::json::array();
  for (int i = 0; i < 20'000; ++i) items.push_back({{"what", "pen"}, {"count", i}});
  for (const std::size_t at : {0U, 1U, 12'345U, 19'999U}) {
    nlohmann::json with_one_text = items;
    with_one_text[at]["count"] = "many";
    EXPECT_THAT(refusal<Order>(nlohmann::json{{"items", with_one_text}}.dump()),
                HasSubstr("at \"/items/" + std::to_string(at) + "/count\": "));
  }
  nlohmann::json votes;
  for (int i = 0; i < 50'000; ++i) votes[std::to_string(i)] = i % 100;
  votes["45678"] = "yes";
  EXPECT_THAT(refusal<Order>(nlohmann::json{{"votes", votes}}.dump()),
              HasSubstr("does not fit: [json.exception.type_error.302]"));
}

TEST(TypedPayload, NumbersThatTheirMembersCannotHoldAreRefused) {
  const std::map<std::string, std::string> refused = {
      {R"({"amount": 12.7})", "/amount is 12.7, which its type would make 12"},
      {R"({"items": [{"what": "a", "count": true}]})",
       "/items/0/count is true, which its type would make 1"},
      {R"({"amount": 9223372036854775808})", "/amount is 9223372036854775808"},
      {R"({"amount": 18446744073709551615})", "/amount is 18446744073709551615"},
      {R"({"number": -1})", "/number is -1"},
      {R"({"items": [{"what": "a", "count": 1}, {"what": "b", "count": 3000000000}]})",
       "/items/1/count is 3000000000"},
      {R"({"votes": {"a/b": 40000}})", "/votes/a~1b is 40000"}};
  for (const auto& [payload, why] : refused)
    EXPECT_THAT(refusal<Order>(payload), HasSubstr(why)) << payload;
}

struct Sets {
  std::set<int> ids;
  std::map<int, int> votes;
  std::set<std::vector<int>> groups;
  std::unordered_map<int, Item> items;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Sets, ids, votes, groups, items)

TEST(TypedPayload, ElementsThatATypePutsInAnotherOrderAreTaken) {
  EXPECT_EQ(as<Sets>(R"({"ids": [3, 1, 2.0]})").ids, (std::set<int>{1, 2, 3}));
  EXPECT_EQ(as<Sets>(R"({"ids": [1, 1, 3]})").ids, (std::set<int>{1, 3}));
  EXPECT_EQ(as<Sets>(R"({"votes": [[2, 5], [1, 7]]})").votes.at(2), 5);
  EXPECT_EQ(as<Sets>(R"({"groups": [[4, 5], [1, 9]]})").groups.size(), 2U);
  const std::string items = R"({"items": [[3, {"what": "a", "count": 1, "x": 0.5}],
                                          [1, {"what": "b", "count": 2}],
                                          [2, {"what": "c", "count": 3}]]})";
  EXPECT_EQ(as<Sets>(items).items.at(1).count, 2);
}

TEST(TypedPayload, AnotherOrderHidesNoChangedNumber) {
  const std::map<std::string, std::string> refused = {
      {R"({"ids": [3, 1.5, 1]})", "/ids/0 is 3"},
      {R"({"ids": [1.5, 1]})", "/ids/0 is 1.5"},
      {R"({"votes": [[2, 5], [1, 5.5]]})", "/votes/0/0 is 2"},
      {R"({"groups": [[4.5, 5], [1, 4]]})", "/groups/0/0 is 4.5"},
      {R"({"items": [[1, {"what": "a", "count": 2.5, "x": 2}]]})", "/items/0/1/count is 2.5"}};
  for (const auto& [payload, why] : refused)
    EXPECT_THAT(refusal<Sets>(payload), HasSubstr(why)) << payload;
}

struct Rates {
  double rate = 0;
  float share = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Rates, rate, share)

TEST(TypedPayload, IntegersAreExactInFloats) {
  EXPECT_EQ(as<Rates>(R"({"rate": 9007199254740992})").rate, 0x1p53);
  EXPECT_EQ(as<Rates>(R"({"rate": -9223372036854775808})").rate, -0x1p63);
  EXPECT_EQ(as<Rates>(R"({"share": 0.1})").share, 0.1F) << "as close as a float comes";
  EXPECT_THAT(refusal<Rates>(R"({"rate": 9007199254740993})"),
              HasSubstr("/rate is 9007199254740993"));
  EXPECT_THAT(refusal<Rates>(R"({"rate": 18446744073709551615})"), HasSubstr("/rate is 1844"));
  EXPECT_THAT(refusal<Rates>(R"({"share": 16777217})"), HasSubstr("/share is 16777217"));
  EXPECT_THAT(refusal<Rates>(R"({"share": 16777217.0})"), HasSubstr("/share is 16777217.0"));
}

}  // namespace
}  // namespace hapax
