// Needs no Kafka: the harness delivers messages on a throw-away PostgreSQL.
#include "@name@.hpp"

#include <gtest/gtest.h>

#include <hapax/testing.hpp>

namespace {

using hapax::testing::Harness;
using hapax::testing::Record;
using hapax::testing::Result;

Record message(const std::string& id, long amount) {
  return {.payload = nlohmann::json{{"id", id}, {"account", "ada"}, {"amount", amount}}.dump(),
          .headers = {{"idempotency-key", id}}};
}

class @Class@Test : public testing::Test {
 protected:
  long sum() { return harness.sql("SELECT amount FROM @name@_sums")[0].get<long>("amount"); }

  Harness harness{hapax::handler<@Class@>("@name@"),
                  {.config = "worker.json",
                   .schema = {"schema.sql"},
                   .worker_role = "worker_role.sql"}};
};

// Delivered again, in parallel, killed at each point, with SQL errors at each statement.
TEST_F(@Class@Test, TakesEffectExactlyOnce) {
  harness.expect_exactly_once(message("m1", 30));
  EXPECT_EQ(sum(), 30);
}

// Two messages of one account at once. A handler that selects the sum and then writes a new one fails.
TEST_F(@Class@Test, LosesNoUpdate) {
  harness.expect_no_lost_update(message("m1", 30), message("m2", 12));
}

TEST_F(@Class@Test, AddsUpDifferentMessages) {
  harness.deliver(message("m1", 30));
  harness.deliver(message("m2", 12));
  EXPECT_EQ(harness.resend(message("m2", 12)).result, Result::duplicate);
  EXPECT_EQ(sum(), 42);
}

TEST_F(@Class@Test, RejectsWhatCanNeverWork) {
  EXPECT_EQ(harness.deliver(message("m1", -1)).reason, "rejected");
  const auto incomplete = harness.deliver({.payload = R"({"id": "m2", "account": "ada", "amount": 1.5})",
                                           .headers = {{"idempotency-key", "m2"}}});
  EXPECT_EQ(incomplete.reason, "rejected");
}

}  // namespace
