#include "config/units.hpp"

#include <gtest/gtest.h>

namespace hapax::config {
namespace {

using namespace std::chrono_literals;

TEST(Units, ReadDurationsWithTheirUnit) {
  EXPECT_EQ(parse_duration("200ms"), 200ms);
  EXPECT_EQ(parse_duration("3s"), 3s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("72h"), 72h);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("0ms"), 0ms);
}

TEST(Units, RefuseWhatIsNoDuration) {
  for (const char* text : {"", "3", "s", "-3s", "+3s", " 3s", "3 s", "3s ", "1.5s", "1h30m", "3S",
                           "3sec", "9223372036854775807s", "99999999999999999999ms"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Units, ReadSizes) {
  EXPECT_EQ(parse_size("17"), 17u);
  EXPECT_EQ(parse_size("17B"), 17u);
  EXPECT_EQ(parse_size("64KiB"), 65'536u);
  EXPECT_EQ(parse_size("1MiB"), 1'048'576u);
  EXPECT_EQ(parse_size("2GiB"), 2'147'483'648u);
}

TEST(Units, RefuseWhatIsNoSize) {
  for (const char* text : {"", "KiB", "64KB", "64kib", "64 KiB", "-1", "9223372036854775807GiB"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(Units, WriteTheShortestText) {
  EXPECT_EQ(format_duration(60s), "1m");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(48h), "2d");
  EXPECT_EQ(format_duration(0ms), "0ms");
  EXPECT_EQ(format_size(65'536), "64KiB");
  EXPECT_EQ(format_size(65'537), "65537B");
}

}  // namespace
}  // namespace hapax::config
