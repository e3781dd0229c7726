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
             {"postgres://u:p/w?x@h/db", "postgres://u:***@h/db"}})
    EXPECT_EQ(redact_url(url), shown);
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
