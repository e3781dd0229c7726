// Needs no server: the harness delivers requests as messages on a throw-away PostgreSQL.
#include "@name@.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <hapax/testing.hpp>

namespace {

using hapax::testing::Harness;
using hapax::testing::Record;
using hapax::testing::Result;

Record request(const std::string& key, long amount, const std::string& id = "",
               const std::string& tenant = "shop") {
  return {.payload = nlohmann::json{
              {"id", id.empty() ? key : id}, {"account", "ada"}, {"amount", amount}}.dump(),
          .headers = {{"idempotency-key", key},
                      {":method", "POST"},
                      {":path", "/@name@"},
                      {":tenant", tenant}}};
}

class @Class@Test : public testing::Test {
 protected:
  long sum() { return harness.sql("SELECT amount FROM @name@_sums")[0].get<long>("amount"); }

  // The harness gives the handler no other rights.
  static nlohmann::json tables() {
    std::ifstream file("gate.json");
    return nlohmann::json::parse(file, nullptr, true, true).at("routes").at(0).at("tables");
  }

  Harness harness{hapax::handler<@Class@>("@name@"),
                  {.route = {{"key", {{"header", "idempotency-key"}}}, {"tables", tables()}},
                   .schema = {"schema.sql"},
                   .worker_role = "worker_role.sql"}};
};

// Sent again, in parallel, killed at each point, with SQL errors at each statement. The kit compares
// the rows and the stored answer.
TEST_F(@Class@Test, TakesEffectExactlyOnce) {
  harness.expect_exactly_once(request("r1", 30));
  EXPECT_EQ(sum(), 30);
}

// Two requests of one account at once. A handler that selects the sum and then writes a new one fails.
TEST_F(@Class@Test, LosesNoUpdate) {
  harness.expect_no_lost_update(request("r1", 30), request("r2", 12));
}

TEST_F(@Class@Test, AddsUpDifferentRequests) {
  harness.deliver(request("r1", 30));
  harness.deliver(request("r2", 12));
  EXPECT_EQ(harness.resend(request("r2", 12)).result, Result::duplicate);
  EXPECT_EQ(sum(), 42);
}

TEST_F(@Class@Test, RejectsAnIdThatItsTenantHasUnderAnotherKey) {
  harness.deliver(request("key1", 30, "r1"));
  EXPECT_EQ(harness.deliver(request("key2", 30, "r1")).reason, "rejected");
  EXPECT_EQ(sum(), 30);
  EXPECT_EQ(harness.deliver(request("key3", 30, "r1", "bank")).result, Result::completed);
}

TEST_F(@Class@Test, RejectsWhatCanNeverWork) {
  EXPECT_EQ(harness.deliver(request("r1", -1)).reason, "rejected");
}

}  // namespace
