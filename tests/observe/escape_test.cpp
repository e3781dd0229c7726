#include "observe/escape.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hapax::observe {
namespace {

using namespace std::string_literals;

TEST(Escape, LeavesSafeTextAsItIs) {
  for (const auto* text :
       {"", "order-4711", "C:\\temp \"x\"", "Zürich", "δοκιμή", "日本", "🙂"}) {
    EXPECT_EQ(escape_for_terminal(text), text);
    EXPECT_EQ(to_valid_utf8(text), text);
  }
}

TEST(Escape, LetsNothingSteerTheTerminal) {
  EXPECT_EQ(escape_for_terminal("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(escape_for_terminal("a\r\nb\tc\x7f"), "a\\x0d\\x0ab\\x09c\\x7f");
  EXPECT_EQ(escape_for_terminal("a\0b"s), "a\\x00b");
  EXPECT_EQ(escape_for_terminal("\xc2\x9b[2J"), "\\u{9b}[2J");  // C1: CSI in one character
}

TEST(Escape, ShowsWhatWouldReorderTheLine) {
  EXPECT_EQ(escape_for_terminal("a\u202Eb"), "a\\u{202e}b");
  EXPECT_EQ(escape_for_terminal("a\u2066b\u2069"), "a\\u{2066}b\\u{2069}");
  EXPECT_EQ(escape_for_terminal("\u200F\u061C\u2028\uFEFF"), "\\u{200f}\\u{61c}\\u{2028}\\u{feff}");
}

TEST(Escape, ShowsEachInvalidByte) {
  const struct {
    std::string bytes, shown;
  } cases[] = {
      {"a\xff"
       "b",
       "a\\xffb"},
      {"\x80", "\\x80"},                    // a continuation without a lead
      {"\x9b", "\\x9b"},                    // a bare C1 byte
      {"\xc3", "\\xc3"},                    // cut off
      {"\xe2\x82z", "\\xe2\\x82z"},         // cut off in the middle
      {"\xc0\xaf", "\\xc0\\xaf"},           // overlong
      {"\xe0\x80\x80", "\\xe0\\x80\\x80"},  // overlong
      {"\xf0\x80\x80\x80", "\\xf0\\x80\\x80\\x80"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(escape_for_terminal(c.bytes), c.shown);
    EXPECT_EQ(to_valid_utf8(c.bytes), c.shown);
  }
}

TEST(Escape, QuotesSoThatTwoTextsNeverLookAlike) {
  EXPECT_EQ(quote_for_terminal("a \"b\""), "\"a \\\"b\\\"\"");
  EXPECT_NE(quote_for_terminal("\\x1b"), quote_for_terminal("\x1b"));
  EXPECT_NE(quote_for_terminal("\\u{202e}"), quote_for_terminal("\u202E"));
}

}  // namespace
}  // namespace hapax::observe
