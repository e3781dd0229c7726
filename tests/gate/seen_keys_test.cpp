#include "gate/seen_keys.hpp"

#include <gtest/gtest.h>

namespace hapax::gate {
namespace {

std::size_t hash_of(const std::string& key, const std::string& tenant = "shop") {
  Request request;
  request.key = key;
  request.tenant = tenant;
  return SeenKeys::hash_of(request);
}

// Of keys that took each other's place, every retry was claimed like a first request.
TEST(SeenKeys, KeepsManyKeysThatAreRetriedOverAndOver) {
  SeenKeys seen;
  const auto name = [](int i) { return "replay-" + std::to_string(i); };
  for (int i = 0; i < 4'000; ++i) seen.add(hash_of(name(i)));
  int kept = 0;
  for (int i = 0; i < 4'000; ++i) kept += seen.has(hash_of(name(i))) ? 1 : 0;
  EXPECT_GE(kept, 3'990);
  EXPECT_FALSE(seen.has(hash_of("another")));
  EXPECT_FALSE(seen.has(hash_of(name(1), "another shop")));
}

TEST(SeenKeys, ForgetsTheOldestOfThoseThatFallTogether) {
  SeenKeys seen;
  constexpr std::size_t kApart = std::size_t{1} << 40U;  // the same place for any size of the table
  for (std::size_t i = 1; i <= 5; ++i) seen.add(i * kApart);
  seen.add(5 * kApart);  // once more takes no place
  EXPECT_FALSE(seen.has(kApart));
  for (std::size_t i = 2; i <= 5; ++i) EXPECT_TRUE(seen.has(i * kApart)) << i;
}

}  // namespace
}  // namespace hapax::gate
