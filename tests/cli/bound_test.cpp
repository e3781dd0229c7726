#include "cli/bound.hpp"

#include <gtest/gtest.h>

namespace hapax::app {
namespace {

TEST(Bound, IsAnOffsetOrATimeInUtc) {
  EXPECT_EQ(parse_bound("0"), (Bound{false, 0}));
  EXPECT_EQ(parse_bound("9223372036854775807"), (Bound{false, 9223372036854775807}));
  EXPECT_EQ(parse_bound("1970-01-02"), (Bound{true, 86'400'000}));
  EXPECT_EQ(parse_bound("2026-11-01T09:30"), (Bound{true, 1'793'525'400'000}));
  EXPECT_EQ(parse_bound("2026-11-01T09:30Z"), (Bound{true, 1'793'525'400'000}));
  EXPECT_EQ(parse_bound("2026-11-01T09:30:05Z"), (Bound{true, 1'793'525'405'000}));
}

TEST(Bound, RefusesWhatItCannotBe) {
  for (const char* const text :
       {"", "-1", "x", "1x", "9223372036854775808", "2026-13-01", "2026-02-30", "2026-11-01T",
        "2026-11-01T24:00", "2026-11-01T09", "2026-11-01T09:60", "2026-11-01 09:30",
        "2026-11-01T09:30:61", "2026-11-01T09:30+01:00", "2026-11-1", "+026-11-01", "2026-11-01Z"})
    EXPECT_FALSE(parse_bound(text)) << text;
}

}  // namespace
}  // namespace hapax::app
