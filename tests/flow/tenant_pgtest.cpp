// A tenant cannot touch another tenant's keys, even with separators in its name or its keys.
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

// Put together with a separator, many of these would be one.
const std::vector<std::string> kNames = {
    "a",      "b",    "a:b",      "a\",\"b", "a|b",
    "a/b",    "a b",  ":\"a\"",   "a\\",     "\\a",
    "a,b",    "a'b",  ":(\"a\")", "(a,b)",   std::string("a\0b", 3),
    "a\nb",   "\xff", "A",        "a ",      ":sha256:a",
    "booking"};

class Tenants : public FlowCase {
 protected:
  Tenants() { route.key.tenant = key::Source{key::Source::Kind::header, {"tenant"}, false}; }

  Outcome sent(const std::string& tenant, const std::string& key, std::int64_t offset) {
    return process({.key = key, .offset = offset, .headers = {{"tenant", tenant}}},
                   [](const Message&, Context& context) {
                     context.sql("INSERT INTO effects (note) VALUES ('done')");
                   });
  }
};

TEST_F(Tenants, NeverMeetThoughTheirNamesAndKeysHoldSeparators) {
  std::int64_t offset = 0;
  for (const std::string& tenant : kNames)
    for (const std::string& key : kNames)
      EXPECT_EQ(sent(tenant, key, offset++).result, Result::completed) << tenant << " / " << key;
  const auto all = static_cast<int>(kNames.size() * kNames.size());
  EXPECT_EQ(count("effects"), all);
  EXPECT_EQ(database.count("SELECT count(DISTINCT (key, tenant)) FROM hapax.idempotency_keys"),
            all);
}

TEST_F(Tenants, FindTheirOwnKeysAgain) {
  for (const char* const tenant : {"a", "a:b", "b"}) {
    EXPECT_EQ(sent(tenant, "k", 1).result, Result::completed) << tenant;
    EXPECT_EQ(sent(tenant, "k", 2).result, Result::duplicate) << tenant;
  }
}

// Payload drift would tell one tenant that another has used the key.
TEST_F(Tenants, LearnNothingOfEachOthersPayloads) {
  sent("a", "k", 1);
  EXPECT_EQ(
      process({.key = "k", .payload = "99", .offset = 2, .headers = {{"tenant", "b"}}}).result,
      Result::completed);
}

TEST_F(Tenants, AreNotNamedTwice) {
  const Outcome outcome =
      process({.key = "k", .offset = 1, .headers = {{"tenant", "a"}, {"Tenant", "b"}}});
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "ambiguous_tenant");
  EXPECT_EQ(count("effects"), 0);
}

}  // namespace
}  // namespace hapax::flow
