// How to test a handler: no Kafka, no set-up, every test in a fraction of a second.
#include "withdrawals.hpp"

#include <gtest/gtest.h>

#include <hapax/testing.hpp>
#include <set>

using hapax::testing::CrashPoint;
using hapax::testing::Harness;
using hapax::testing::Outcome;
using hapax::testing::Record;
using hapax::testing::Report;
using hapax::testing::Result;

namespace {

const hapax::testing::Options kOptions{.config = "worker.json", .schema = {"schema.sql"}};

Record withdrawal(const std::string& id, long amount) {
  return {.payload = nlohmann::json{{"account", "ada"}, {"amount", amount}}.dump(),
          .headers = {{"idempotency-key", id}}};
}

class WithdrawalsTest : public testing::Test {
 protected:
  void open_account() { harness.sql("INSERT INTO accounts VALUES ('ada', 100)"); }
  long balance() { return harness.sql("SELECT balance FROM accounts")[0][0].as<long>(); }

  Harness harness{hapax::handler<Withdrawals>("withdrawals"), kOptions};
};

// The one that every handler should have: delivered twice, in parallel, killed at each point, with
// SQL errors at each statement and at COMMIT. What is wrong is thrown, as a report.
TEST_F(WithdrawalsTest, TakesEffectExactlyOnce) {
  open_account();
  harness.expect_exactly_once(withdrawal("w1", 30));
  EXPECT_EQ(balance(), 70);
}

TEST_F(WithdrawalsTest, RejectsWhatIsOverTheLimit) {
  open_account();
  const Outcome outcome = harness.deliver(withdrawal("w1", 1001));
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "rejected");
  EXPECT_EQ(balance(), 100);
}

// A retry waits seconds in a worker. Here it does not.
TEST_F(WithdrawalsTest, WaitsForTheAccount) {
  EXPECT_EQ(harness.attempt(withdrawal("w1", 30)).result, Result::waiting);
  open_account();
  EXPECT_EQ(harness.deliver(withdrawal("w1", 30)).result, Result::completed);
  EXPECT_EQ(balance(), 70);
}

TEST_F(WithdrawalsTest, GivesUpAfterFiveAttempts) {
  const Outcome outcome = harness.deliver(withdrawal("w1", 30));
  EXPECT_EQ(outcome.reason, "attempts_exhausted");
  EXPECT_EQ(outcome.runs, 5);
}

// Each of the ways can be gone alone.
TEST_F(WithdrawalsTest, SurvivesADeadlockAndACrash) {
  open_account();
  EXPECT_EQ(harness.deliver(withdrawal("w1", 30), {"40P01", 1}).runs, 2);
  harness.crash_at(CrashPoint::handled, withdrawal("w2", 30));
  EXPECT_EQ(harness.deliver(withdrawal("w2", 30)).result, Result::completed);
  EXPECT_EQ(balance(), 40);
}

// A wrong one, to see it caught: a cache of what is done forgets to forget. PostgreSQL rolls the
// first run back, the second finds its id in the cache, and the money is never taken.
class Forgetful final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, hapax::Context& context) override {
    if (!done_.insert(std::string(*message.header("idempotency-key"))).second) return;
    context.write("UPDATE accounts SET balance = balance - $2 WHERE id = $1",
                  message.json().at("account"), message.json().at("amount"));
  }

 private:
  std::set<std::string> done_;
};

TEST(Forgetful, IsCaught) {
  Harness harness(hapax::handler<Forgetful>("withdrawals"), kOptions);
  harness.sql("INSERT INTO accounts VALUES ('ada', 100)");
  const Report report = harness.examine(withdrawal("w1", 30));
  EXPECT_FALSE(report.passed());
  EXPECT_NE(report.text().find("WRONG   PostgreSQL answers 40P01 to COMMIT"), std::string::npos)
      << report;
}

}  // namespace
