// Rows as a handler reads them: a range, tuples, single columns.
#include "hapax/rows.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <ranges>

namespace hapax {
namespace {

using ::testing::ElementsAre;

static_assert(std::ranges::random_access_range<const Rows>);
static_assert(std::ranges::sized_range<const Rows>);
static_assert(std::ranges::common_range<const Rows>);

Rows accounts() {
  return Rows({{"id", "name"}, {{"7", "ann"}, {"9", std::nullopt}, {"8", "bob"}}, 0});
}

#if !defined(__clang__) || __clang_major__ > 15  // earlier ones cannot read libstdc++'s views
TEST(Rows, AreARangeOfTheStandardLibrary) {
  const Rows rows = accounts();
  std::vector<long> ids;
  for (const long id : rows | std::views::reverse | std::views::transform([](const Row& row) {
                         return row.get<long>("id");
                       }))
    ids.push_back(id);
  EXPECT_THAT(ids, ElementsAre(8, 9, 7));
  const auto found = std::ranges::find_if(
      rows, [](const Row& row) { return row.get<std::optional<std::string>>("name") == "bob"; });
  EXPECT_EQ(found - rows.begin(), 2);
}
#endif

TEST(Rows, OutliveTheRangeThatGaveThem) {
  const auto first = accounts().begin();
  EXPECT_EQ((*first).get<std::string>(1), "ann");
}

TEST(Rows, AreReadAsTuples) {
  std::vector<std::string> seen;
  for (const auto& [id, name] : accounts().as<int, std::optional<std::string>>())
    seen.push_back(std::to_string(id) + name.value_or("-"));
  EXPECT_THAT(seen, ElementsAre("7ann", "9-", "8bob"));
  const auto [id, name] = accounts()[2].as<long, std::string>();
  EXPECT_EQ(id, 8);
  EXPECT_EQ(name, "bob");
}

enum class Kind : std::uint8_t { deposit = 1, withdrawal = 2 };
enum class Letter : char { a = 7 };

// What a Parameter wrote, in a column of this text.
Field field(std::optional<std::string> text) {
  return Rows({{"it"}, {{std::move(text)}}, 0})[0][0];
}
template <class Value>
Value read_back(const Value& value) {
  return field(Parameter(value).text()).template as<Value>();
}

TEST(Rows, GiveBackEachTypeThatAParameterTakes) {
  EXPECT_EQ(read_back('7'), '7');
  EXPECT_EQ(read_back(Kind::withdrawal), Kind::withdrawal);
  EXPECT_EQ(read_back(Letter::a), Letter::a);
  EXPECT_EQ(read_back(std::optional<Kind>()), std::nullopt);
  EXPECT_EQ(read_back(true), true);
  EXPECT_EQ(read_back(-1.5), -1.5);
  EXPECT_EQ(read_back(nlohmann::json{{"b", 1}, {"a", 2}}), (nlohmann::json{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(field(R"({"b":1,"a":2})").as<nlohmann::ordered_json>().dump(), R"({"b":1,"a":2})");
  const std::string bytes("\x01\0\xff", 3);
  EXPECT_EQ(field(Parameter::bytes(bytes).text()).bytes(), bytes);
  EXPECT_EQ(field("\\x").bytes(), "");
  EXPECT_EQ(field(std::nullopt).bytes(), std::nullopt);
}

TEST(Rows, RefuseATextThatIsNoByteaAndNoChar) {
  for (const char* text : {"", "00", "\\x0", "\\x0g", "\\x+1", "\\000"})
    EXPECT_THROW(field(text).bytes(), std::runtime_error) << text;
  for (const char* text : {"", "ab"}) EXPECT_THROW(field(text).as<char>(), std::runtime_error);
  EXPECT_THROW(field("withdrawal").as<Kind>(), std::runtime_error);
}

TEST(Rows, ThatDoNotFitTheTypesAreRefused) {
  EXPECT_THROW(accounts()[0].as<long>(), std::out_of_range);
  EXPECT_THROW((accounts().as<long, std::string>()), std::runtime_error) << "a NULL";
  EXPECT_THROW(accounts()[0].get<long>("nobody"), std::out_of_range);
  EXPECT_THROW(accounts()[0].get<long>("name"), std::runtime_error);
}

}  // namespace
}  // namespace hapax
