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

TEST(Rows, ThatDoNotFitTheTypesAreRefused) {
  EXPECT_THROW(accounts()[0].as<long>(), std::out_of_range);
  EXPECT_THROW((accounts().as<long, std::string>()), std::runtime_error) << "a NULL";
  EXPECT_THROW(accounts()[0].get<long>("nobody"), std::out_of_range);
  EXPECT_THROW(accounts()[0].get<long>("name"), std::runtime_error);
}

}  // namespace
}  // namespace hapax
