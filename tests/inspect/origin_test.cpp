// The header by which `explain` walks back from a published record to its message.
#include "inspect/origin.hpp"

#include <gtest/gtest.h>

namespace hapax::app {
namespace {

TEST(Origin, IsReadAsItIsWritten) {
  for (const char* const group : {"g", "team/billing", "a/b/1/2/3", "/"}) {
    const store::Source source{group, "payments", 2, 3, 9'000'000'000};
    const auto read = parse_origin(origin_text(source));
    ASSERT_TRUE(read) << group;
    EXPECT_EQ(origin_text(*read), origin_text(source));
    EXPECT_EQ(read->group, group);
    EXPECT_EQ(read->topic, "payments");
    EXPECT_EQ(read->offset, 9'000'000'000);
  }
}

TEST(Origin, OfARequestNamesTheRoute) {
  const auto read = parse_origin(origin_text({"team/payments", "/payments/{account}", 0, 0, 77}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->group, "team/payments");
  EXPECT_EQ(read->topic, "/payments/{account}");
}

TEST(Origin, IsNothingIfTheTextIsAnyOther) {
  for (const char* const text : {"", "g/t/1/2", "/t/1/2/3", "g//1/2/3", "g/t/x/2/3", "g/t/1/2/",
                                 "g/t/1/2/-3", "g/t/1/2/3 ", "g/t/1/99999999999/3"})
    EXPECT_FALSE(parse_origin(text)) << text;
}

TEST(Origin, IsTheLastHeaderOfItsName) {
  const Header headers[] = {{"hapax-origin", "x/y/1/0/0"},
                            {"idempotency-key", "the handler's"},
                            {"idempotency-key", "k"},
                            {"hapax-origin", "g/t/1/2/3"}};
  Message::Parts parts;
  EXPECT_FALSE(origin_of(Message(parts)));
  parts.headers = headers;
  const auto origin = origin_of(Message(parts));
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin_text(origin->source), "g/t/1/2/3");
  EXPECT_EQ(origin->idempotency_key, "k");
}

}  // namespace
}  // namespace hapax::app
