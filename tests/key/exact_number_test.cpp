#include "key/exact_number.hpp"

#include <gtest/gtest.h>

#include <set>

namespace hapax::key {
namespace {

TEST(ExactNumber, GivesAllSpellingsOfAValueOneText) {
  const std::vector<std::vector<std::string>> spellings = {
      {"0", "-0", "0.0", "-0.0", "0e0", "0E+99", "-0e-7", "0e99999999999999999999"},
      {"1", "1.0", "1e0", "1E+0", "100e-2", "0.1e1", "0.001e3", "1.000000", "1e-00"},
      {"-12.5", "-125e-1", "-0.125e2", "-12.50", "-1.25E1"},
      {"1000000", "1e6", "1E6", "1.0e+06", "10.00e5"},
      {"0.00001", "1e-5", "0.1e-4", "10e-6"},
      {"9007199254740993", "9007199254740993.0", "9.007199254740993e15"},
      {"1e21", "1000000000000000000000", "10E20"},
      {"12e-30", "1.2e-29", "0.12e-28"},
  };
  for (const auto& group : spellings)
    for (const std::string& spelling : group)
      EXPECT_EQ(canonical_number(spelling), group.front()) << spelling;
}

TEST(ExactNumber, KeepsDifferentValuesApart) {
  const std::vector<std::string> numbers = {"9007199254740992",
                                            "9007199254740993",
                                            "18446744073709551616",
                                            "18446744073709551617",
                                            "1.0000000000000001",
                                            "1",
                                            "-1",
                                            "10",
                                            "0.1",
                                            "0",
                                            "1e-999",
                                            "1e-998",
                                            "1e21",
                                            "1e22",
                                            "-1e21",
                                            "12e-30",
                                            "12e-31",
                                            "0.30000000000000004",
                                            "0.3",
                                            "1e999999999999999999"};
  std::set<std::string> texts;
  for (const std::string& number : numbers) texts.insert(canonical_number(number).value());
  EXPECT_EQ(texts.size(), numbers.size());
}

TEST(ExactNumber, WritesEvery64BitIntegerWithoutAnExponent) {
  for (const std::string integer : {"10000000000000000000", "-9000000000000000000",
                                    "18446744073709551615", "-9223372036854775808", "100"})
    EXPECT_EQ(canonical_number(integer), integer);
  EXPECT_EQ(canonical_number("1e19"), "10000000000000000000");
}

TEST(ExactNumber, NeverWritesMoreThanTheNumberHadPlusTheZeros) {
  for (const std::string number : {"1e-999999999999999999", "1e999999999999999999", "1e20", "1e-20",
                                   "1e-21", "0.000000000000000000000000000000000001", "7e-1"})
    EXPECT_LE(canonical_number(number).value().size(), number.size() + kMaxAddedZeros + 1)
        << number;
}

TEST(ExactNumber, RefusesAnExponentItCannotCompare) {
  EXPECT_EQ(canonical_number("1e-1000000000000000000"), std::nullopt);
  EXPECT_EQ(canonical_number("1e-0000000000000000000000005"), "0.00001");
}

TEST(ExactNumber, TakesTheDecimalPointOfAnyLocale) { EXPECT_EQ(canonical_number("12,50"), "12.5"); }

}  // namespace
}  // namespace hapax::key
