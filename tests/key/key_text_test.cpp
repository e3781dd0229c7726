#include "key/key_text.hpp"

#include <gtest/gtest.h>

#include <map>

#include "key/sha256.hpp"

namespace hapax::key {
namespace {

using std::string_literals::operator""s;

Part bytes(std::string text) { return {Part::Type::bytes, std::move(text)}; }
Part json(std::string text) { return {Part::Type::json, std::move(text)}; }

// Fails if two inputs have one stored text, or if a text must not be stored.
class Stored {
 public:
  void add(const std::string& text, const std::string& what) {
    const auto [place, fresh] = seen_.emplace(text, what);
    EXPECT_TRUE(fresh) << what << " and " << place->second << " are both stored as " << text;
    EXPECT_FALSE(text.empty()) << what;
    EXPECT_LE(text.size(), kMaxStoredKey) << what;
    for (const char c : text)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) << what;
  }

 private:
  std::map<std::string, std::string> seen_;
};

TEST(KeyText, LeavesReadableKeysAsTheyAre) {
  for (const std::string key : {"payment-17", "a b", " ", "\"quoted\"", "\\", "a:b", "1", "true",
                                "null", "[1]", "(a)", "caf\xC3\xA9", "\xF0\x9F\x92\xB8", "\xC2\xA0",
                                "\xEF\xBF\xBF", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF", "sha256:00"})
    EXPECT_EQ(encode_key(key), key);
  EXPECT_EQ(encode_key(std::string(kMaxStoredKey, 'a')), std::string(kMaxStoredKey, 'a'));
}

TEST(KeyText, EscapesWhatPostgresqlOrATerminalCannotTake) {
  EXPECT_EQ(encode_key("a\0b"s), R"(:"a\x00b")");
  EXPECT_EQ(encode_key("\xFF"), R"(:"\xff")");
  EXPECT_EQ(encode_key("a\nb\x7f"), R"(:"a\x0ab\x7f")");
  EXPECT_EQ(encode_key("\xC2\x85"), R"(:"\xc2\x85")");
  EXPECT_EQ(encode_key("\"\\\x1b"), R"(:"\"\\\x1b")");
  EXPECT_EQ(encode_key(":1"), R"(:":1")");
  EXPECT_EQ(encode_key(""), R"(:"")");
}

TEST(KeyText, HoldsEveryIllFormedSequenceForUnprintable) {
  for (const std::string& sequence :
       {"\x80"s, "\xBF"s, "\xC0\x80"s, "\xC1\xBF"s, "\xC3"s, "\xC3("s, "\xE0\x80\x80"s,
        "\xE0\x9F\xBF"s, "\xE2\x82"s, "\xE2(\xA1"s, "\xED\xA0\x80"s, "\xED\xBF\xBF"s,
        "\xF0\x80\x80\x80"s, "\xF0\x8F\xBF\xBF"s, "\xF0\x9F\x92"s, "\xF4\x90\x80\x80"s,
        "\xF5\x80\x80\x80"s, "\xFE"s})
    EXPECT_TRUE(encode_key(sequence).starts_with(R"(:"\x)")) << hex(sequence);
}

TEST(KeyText, HashesWhatWouldBeTooLong) {
  const std::string longer(kMaxStoredKey + 1, 'a');
  EXPECT_EQ(encode_key(longer), ":sha256:" + hex(sha256(longer)));
  EXPECT_NE(encode_key(std::string(10'000, 'a') + "1"), encode_key(std::string(10'000, 'a') + "2"));
  EXPECT_TRUE(encode_key(std::string(100, '\0')).starts_with(":sha256:"));
  EXPECT_TRUE(encode_part(json(std::string(300, '9'))).starts_with(":sha256:"));
}

TEST(KeyText, StoresDifferentBytesDifferently) {
  Stored stored;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    stored.add(encode_key(one), "byte " + hex(one));
    stored.add(encode_key("key\0"s + one), "key NUL " + hex(one));
    stored.add(encode_key(std::string(10'000, 'x') + one), "10,000 x and " + hex(one));
  }
  for (const std::string& key : {"\0"s + "0", R"(\x00)"s, R"(:"\x00")"s, R"(:"\\x00")"s, ""s,
                                 ":\""s, R"(:"")"s, ":sha256:00"s, "\\\0"s, "\xEF\xBF\xBD"s, "::"s})
    stored.add(encode_key(key), "text " + key);
}

TEST(KeyText, StoresDifferentTypesAndShapesDifferently) {
  Stored stored;
  stored.add(encode_key("1"), "bytes 1");
  stored.add(encode_part(json("1")), "number 1");
  stored.add(encode_key(":1"), "bytes :1");
  stored.add(encode_key("true"), "bytes true");
  stored.add(encode_part(json("true")), "true");
  stored.add(encode_part(json(R"(["a","b"])")), "array");
  stored.add(encode_key(R"(["a","b"])"), "bytes of an array");
  stored.add(encode_key(R"(:("a","b"))"), "bytes of two parts");
  const std::vector<std::vector<Part>> lists = {
      {bytes("a:b"), bytes("c")},
      {bytes("a"), bytes("b:c")},
      {bytes("a"), bytes("b")},
      {bytes("ab"), bytes("")},
      {bytes(""), bytes("ab")},
      {bytes("a\",\"b")},
      {bytes("a"), bytes("b"), bytes("")},
      {bytes("1"), bytes("2")},
      {json("1"), bytes("2")},
      {bytes("1"), json("2")},
      {json("12")},
      {json("1"), json("2")},
      {json("[1,2]")},
      {json("true"), bytes("x")},
      {bytes("true"), bytes("x")},
      {bytes("\\"), bytes("\"")},
      {bytes("\\\",\"")},
      {bytes("a\0"s), bytes("b")},
      {bytes("a"), bytes("\0b"s)},
      {bytes("a\\x00"), bytes("b")},
      {bytes(std::string(300, 'a')), bytes("b")},
      {bytes(std::string(300, 'a') + "b")},
  };
  for (const auto& list : lists) {
    std::string what;
    for (const Part& part : list) what += part.text.substr(0, 20) + " | ";
    stored.add(encode_parts("", list), what);
    stored.add(encode_parts("at", list), "at " + what);
  }
}

TEST(KeyText, IsReadable) {
  EXPECT_EQ(encode_parts("", std::vector{bytes("a:b"), bytes("c"), json("17")}),
            R"(:("a:b","c",17))");
  EXPECT_EQ(encode_parts("at", std::vector{bytes("payments"), json("42")}),
            R"(:at("payments",42))");
  EXPECT_EQ(encode_part(bytes("x")), "x");
  EXPECT_EQ(encode_part(json("-0.5")), ":-0.5");
}

}  // namespace
}  // namespace hapax::key
