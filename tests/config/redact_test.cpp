#include "config/redact.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hapax::config {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(Redact, HidesThePasswordOfAUri) {
  for (const auto& [url, shown] :
       Pairs{{"postgresql://u:pw@h:5432/db", "postgresql://u:***@h:5432/db"},
             {"postgres://u:pw@h1:1,h2:2/db?a=b", "postgres://u:***@h1:1,h2:2/db?a=b"},
             {"postgres://:pw@h", "postgres://:***@h"},
             {"postgres:///db?user=u&password=pw&a=b", "postgres:///db?user=u&password=***&a=b"},
             {"postgres:///db?sslpassword=pw", "postgres:///db?sslpassword=***"},
             {"postgres:///db?p%61ssword=pw", "postgres:///db?p%61ssword=***"},
             {"postgres://u:p@w@h/db", "postgres://u:***@h/db"},
             {"postgres://u:p/w@h/db", "postgres://u:***@h/db"}})
    EXPECT_EQ(redact_url(url), shown);
}

// The first of these was found by the fuzzer: an @ in a parameter passed for the one of a user.
TEST(Redact, HidesWholeAUriInWhichAPasswordMayStandAnywhere) {
  for (const char* url :
       {"postgres://h:5432/d?user=u&password=pa@ss", "postgres://h/d?sslpassword=a:b@c",
        "postgres://u:p/w?x@h/db", "postgres://u:secret/db", "postgres://u:se/cret/db",
        "postgres://h1:1,u:secret"})
    EXPECT_EQ(redact_url(url), "postgres://***") << url;
}

TEST(Redact, ShowsTheHostsAndPortsOfAUri) {
  for (const std::string url : {"postgres://h/d", "postgres://h:5432", "postgres://h1:1,h2:2,h3/d",
                                "postgres://[::1]:5432/d", "postgres://[::1],h:1?a=b"})
    EXPECT_EQ(redact_url(url), url);
}

TEST(UrlMistake, IsAPartOfThePasswordThatWouldPassForSomethingElse) {
  for (const char* url : {"postgres://u:p@secret@h/db", "postgres://u:secret/x@h/db",
                          "postgres://u:12/secret@h/db", "postgres://u:secret/db"}) {
    const auto mistake = url_mistake(url);
    ASSERT_TRUE(mistake) << url;
    EXPECT_EQ(mistake->find("secret"), std::string::npos) << *mistake;
  }
  for (const char* url : {"postgres://u:p@h/db", "postgres://u:p%40w@h1:1,h2:2/db?a=b",
                          "postgres:///db?password=pa@ss", "postgres://u@[::1]:5432/db", "host=h",
                          "password=a@b@c", "postgres://u:p?w@h/db"})
    EXPECT_FALSE(url_mistake(url)) << url;
}

TEST(Redact, HidesThePasswordOfAConninfo) {
  for (const auto& [url, shown] :
       Pairs{{"host=h password=pw user=u", "host=h password=*** user=u"},
             {"host = h  password = 'p w\\' x' user=u", "host=h password=*** user=u"},
             {"password=p\\ w user=u", "password=*** user=u"},
             {"passfile=/f sslpassword=pw", "passfile=*** sslpassword=***"}})
    EXPECT_EQ(redact_url(url), shown);
}

TEST(Redact, LeavesWhatHoldsNoPassword) {
  for (const std::string url : {"postgresql:///db", "postgres://u@h:5432/db?application_name=x",
                                "postgres://u:@h/db", "host=h dbname='a b'", "password=''"})
    EXPECT_EQ(redact_url(url), url);
}

TEST(Redact, HidesWholeWhatItCannotRead) {
  for (const char* url : {"secret", "host=h password='unclosed", "host=h secret", "=x",
                          "http://u:secret@h?password=pw", "PG://u:secret@h"})
    EXPECT_EQ(redact_url(url), "***");
}

TEST(Redact, KnowsTheSecretsOfLibrdkafka) {
  for (const char* name :
       {"sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config"})
    EXPECT_EQ(redacted(name, "pw"), "***") << name;
  for (const char* name : {"bootstrap.servers", "group.id", "sasl.username", "ssl.ca.pem"})
    EXPECT_EQ(redacted(name, "shown"), "shown") << name;
}

}  // namespace
}  // namespace hapax::config
