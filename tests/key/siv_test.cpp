#include "key/siv.hpp"

#include <gtest/gtest.h>

namespace hapax::key {
namespace {

TEST(Siv, OpensWhatItSealed) {
  const Siv siv(std::string(64, 'k'));
  for (const std::string& text :
       {std::string("x"), std::string(1000, 'y'), std::string("\0a", 2)}) {
    const std::string sealed = siv.seal(text, "for tests");
    EXPECT_EQ(sealed.size(), text.size() + 16);
    EXPECT_EQ(siv.seal(text, "for tests"), sealed);
    EXPECT_EQ(siv.open(sealed, "for tests"), text);
    EXPECT_EQ(siv.open(sealed, "for others"), std::nullopt);
    EXPECT_EQ(Siv(std::string(64, 'l')).open(sealed, "for tests"), std::nullopt);
  }
}

TEST(Siv, OpensNothingElse) {
  const Siv siv(std::string(64, 'k'));
  const std::string sealed = siv.seal("ann order-17", "for tests");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(siv.open(changed, "for tests"), std::nullopt) << i;
    EXPECT_EQ(siv.open(sealed.substr(0, i), "for tests"), std::nullopt) << i;
  }
  EXPECT_EQ(siv.open(sealed + "x", "for tests"), std::nullopt);
}

TEST(Base64Url, ReadsWhatItWrites) {
  EXPECT_EQ(base64url(""), "");
  EXPECT_EQ(base64url("f"), "Zg");
  EXPECT_EQ(base64url("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64url("\xFB\xFF"), "-_8");
  EXPECT_EQ(bytes_of_base64url("-_8"), "\xFB\xFF");
  EXPECT_EQ(bytes_of_base64url("Zh"), std::nullopt);  // another text of "f"
  for (const char* wrong : {"Z", "Zg==", "Zg ", "+/8", "Zm9vY"})
    EXPECT_EQ(bytes_of_base64url(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace hapax::key
