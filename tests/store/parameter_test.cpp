// What becomes of the values that a handler passes.
#include <gtest/gtest.h>

#include "hapax/rows.hpp"

namespace hapax {
namespace {

enum Side { debit = 1, credit = 2 };
enum class Reversal : std::uint8_t { refund = 7 };

TEST(Parameter, IsABoolOfABoolOnly) {
  EXPECT_EQ(Parameter(true).text(), "t");
  EXPECT_EQ(Parameter('D').text(), "D");
  EXPECT_EQ(Parameter(credit).text(), "2");
  EXPECT_EQ(Parameter(Reversal::refund).text(), "7");
  EXPECT_EQ(Parameter(static_cast<unsigned char>(200)).text(), "200");
  static_assert(!std::is_constructible_v<Parameter, const unsigned char*>);
  static_assert(!std::is_constructible_v<Parameter, int*>);
  static_assert(!std::is_constructible_v<Parameter, const unsigned char(&)[32]>);
  static_assert(!std::is_constructible_v<Parameter, const int(&)[3]>);
  static_assert(!std::is_constructible_v<Parameter, const void*>);
}

TEST(Parameter, OfNothingIsNull) {
  EXPECT_EQ(Parameter(nullptr).text(), std::nullopt);
  EXPECT_EQ(Parameter(static_cast<const char*>(nullptr)).text(), std::nullopt);
  EXPECT_EQ(Parameter(std::optional<int>()).text(), std::nullopt);
  EXPECT_EQ(Parameter(nlohmann::json()).text(), std::nullopt);
  EXPECT_EQ(Parameter("").text(), "");
}

TEST(Parameter, OfBytesIsBytea) {
  const std::byte bytes[] = {std::byte{0}, std::byte{255}};
  EXPECT_EQ(Parameter(bytes).text(), "\\x00ff");
  const char text[] = "ab";
  EXPECT_EQ(Parameter(text).text(), "ab");
}

}  // namespace
}  // namespace hapax
