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
  Harness harness{hapax::handler<@Class@>("@name@"),
                  {.config = "worker.json",
                   .schema = {"schema.sql"},
                   .worker_role = "worker_role.sql"}};
};

// Delivered again, in parallel, killed at each point, with SQL errors at each statement. The kit
// compares rows and published records.
TEST_F(@Class@Test, TakesEffectExactlyOnce) { harness.expect_exactly_once(message("m1", 30)); }

// Two messages of one account at once. A handler that selects the sum and then writes a new one fails.
TEST_F(@Class@Test, LosesNoUpdate) {
  harness.expect_no_lost_update(message("m1", 30), message("m2", 12));
}

TEST_F(@Class@Test, PublishesOneReceiptForTwoDeliveries) {
  harness.deliver(message("m1", 30));
  EXPECT_EQ(harness.resend(message("m1", 30)).result, Result::duplicate);
  const auto published = harness.published();
  ASSERT_EQ(published.size(), 1);
  EXPECT_EQ(published[0].topic, "@name@_receipts");
  EXPECT_EQ(published[0].key, "ada");
  EXPECT_EQ(nlohmann::json::parse(*published[0].payload), nlohmann::json({{"id", "m1"}, {"amount", 30}}));
}

TEST_F(@Class@Test, PublishesNothingForWhatItRejects) {
  EXPECT_EQ(harness.deliver(message("m1", -1)).reason, "rejected");
  EXPECT_TRUE(harness.published().empty());
}

}  // namespace
