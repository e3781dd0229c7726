// The test kit's single deliveries: each does what a worker would.
#include <gmock/gmock.h>
#include <pqxx/pqxx>

#include "kit_case.hpp"

namespace kit {
namespace {

using hapax::testing::CrashPoint;
using hapax::testing::Fault;
using ::testing::HasSubstr;

void fail(const Message&, Context&) { throw std::runtime_error("no luck"); }

TEST(Harness, ARecordDeliveredAgainIsADuplicate) {
  Harness harness(factory(book), ledger());
  EXPECT_EQ(harness.deliver(payment()).result, Result::completed);
  const Outcome again = harness.deliver(payment());
  EXPECT_EQ(again.result, Result::duplicate);
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(payments(harness), "p1=10");
  EXPECT_EQ(harness.sql("SELECT kafka_offset FROM hapax.idempotency_keys")[0][0].as<int>(), 0);
}

TEST(Harness, ARecordSentAgainIsADuplicateAtAnotherOffset) {
  Harness harness(factory(book), ledger());
  harness.deliver(payment());
  EXPECT_EQ(harness.resend(payment()).result, Result::duplicate);
  const Outcome drifted = harness.deliver(payment("p1", "11"));
  EXPECT_EQ(drifted.result, Result::failed);
  EXPECT_EQ(drifted.reason, "payload_drift");
  EXPECT_EQ(harness.sql("SELECT kafka_offset FROM hapax.dead_letters")[0][0].as<int>(), 2);
}

TEST(Harness, TheHandlerIsToldTheKeyOfTheOperation) {
  Harness harness(factory([](const Message&, Context& context) {
                    context.write("INSERT INTO payments VALUES ($1, 1)", context.key());
                  }),
                  ledger());
  harness.expect_exactly_once(payment("p7"));
  EXPECT_EQ(payments(harness), "p7=1");
}

TEST(Harness, RetriesPassAtOnceAndEndInADeadLetter) {
  Harness harness(factory(fail), ledger());
  const Outcome outcome = harness.deliver(payment());
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "attempts_exhausted");
  EXPECT_EQ(outcome.detail, "no luck");
  EXPECT_EQ(outcome.runs, 3);
  EXPECT_EQ(outcome.attempts, 3);
  EXPECT_GE(outcome.waited, std::chrono::hours(1));  // half of 1 h and of 2 h, and jitter
}

TEST(Harness, TheTimeThatPassesCountsForMaxElapsed) {
  Options options = ledger();
  options.route["retry"] = {{"max_attempts", 1000}, {"max_elapsed", "5h"}};
  Harness harness(
      factory([](const Message&, Context&) { throw hapax::Retry("later", std::chrono::hours(2)); }),
      options);
  EXPECT_EQ(harness.deliver(payment()).runs, 4);  // at 0, 2, 4 and 6 hours
}

TEST(Harness, OneAttemptWaitsIfAWorkerWouldTryAgain) {
  Harness harness(factory(fail), ledger());
  const Outcome first = harness.attempt(payment());
  EXPECT_EQ(first.result, Result::waiting);
  EXPECT_EQ(first.attempts, 1);
  harness.restart();
  EXPECT_EQ(harness.attempt(payment()).attempts, 2);
  EXPECT_EQ(harness.attempt(payment()).result, Result::failed);
}

TEST(Harness, ASerializationFailureIsRunAgainAndNotCounted) {
  Harness harness(factory(book), ledger());
  for (const int statement : {1, 2, Fault::kAtCommit}) {
    const std::string id = std::to_string(statement);
    const Outcome outcome = harness.deliver(payment(id), {"40001", statement, 2});
    EXPECT_EQ(outcome.result, Result::completed) << outcome;
    EXPECT_EQ(outcome.runs, 3) << statement;
    EXPECT_EQ(outcome.attempts, 0) << statement;
  }
  EXPECT_EQ(payments(harness), "1=10 2=10 0=10");
}

TEST(Harness, AUniqueViolationIsAnAttempt) {
  Harness harness(factory(book), ledger());
  for (const int statement : {1, 2, Fault::kAtCommit}) {
    const Outcome outcome =
        harness.attempt(payment(std::to_string(statement)), {"23505", statement});
    EXPECT_EQ(outcome.result, Result::waiting) << statement;
    EXPECT_EQ(outcome.sqlstate, "23505") << statement;
    EXPECT_EQ(outcome.attempts, 1) << statement;
  }
  EXPECT_EQ(payments(harness), "");
  EXPECT_EQ(harness.deliver(payment("1")).result, Result::completed);
}

TEST(Harness, ALostConnectionIsSurvived) {
  Harness harness(factory(book), ledger());
  for (const int statement : {1, 2, Fault::kAtCommit}) {
    const std::string id = std::to_string(statement);
    EXPECT_EQ(harness.attempt(payment(id), {"57P01", statement}).result, Result::waiting) << id;
    EXPECT_EQ(payments(harness).find(id + "="), std::string::npos) << id;
    EXPECT_EQ(harness.deliver(payment(id)).result, Result::completed) << id;
  }
}

TEST(Harness, AnErrorThatTheHandlerSwallowsIsARealOne) {
  Harness harness(factory([](const Message& message, Context& context) {
                    try {
                      book(message, context);
                    } catch (const hapax::SqlError&) {
                    }
                  }),
                  ledger());
  EXPECT_EQ(harness.attempt(payment(), {"22012", 1}).result, Result::waiting);
  EXPECT_EQ(payments(harness), "");
}

TEST(Harness, AFaultThatIsNoneIsRefused) {
  Harness harness(factory(book), ledger());
  EXPECT_THROW(harness.deliver(payment(), {"4000"}), std::invalid_argument);
  EXPECT_THROW(harness.deliver(payment(), {"'; --"}), std::invalid_argument);
  EXPECT_THROW(harness.deliver(payment(), {"40001", -1}), std::invalid_argument);
}

TEST(Harness, AWorkerThatDiesBeforeCommitLeavesNothing) {
  Harness harness(factory(book), ledger());
  for (const CrashPoint point : {CrashPoint::claimed, CrashPoint::handled}) {
    harness.crash_at(point, payment());
    EXPECT_EQ(payments(harness), "") << name_of(point);
  }
  EXPECT_EQ(harness.deliver(payment()).result, Result::completed);
}

TEST(Harness, AWorkerThatDiesAfterCommitLeavesADuplicate) {
  Harness harness(factory(book), ledger());
  harness.crash_at(CrashPoint::committed, payment());
  EXPECT_EQ(payments(harness), "p1=10");
  EXPECT_EQ(harness.deliver(payment()).result, Result::duplicate);
}

TEST(Harness, ACrashPointThatIsNotReachedTellsHowItEnded) {
  Harness harness(factory([](const Message&, Context&) { throw hapax::Reject("never"); }),
                  ledger());
  try {
    harness.crash_at(CrashPoint::handled, payment());
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()),
              "it did not come to the point \"handled\": the message was failed (rejected: never, "
              "attempts: 1)");
  }
}

TEST(Harness, OfWorkersAtOnceOneBooks) {
  Harness harness(factory(book), ledger());
  int completed = 0;
  for (const Outcome& outcome : harness.deliver_in_parallel(payment(), 6))
    completed += outcome.result == Result::completed ? 1 : 0;
  EXPECT_EQ(completed, 1);
  EXPECT_EQ(payments(harness), "p1=10");
}

TEST(Harness, TellsWhatTheHandlerLeavesInItsSession) {
  Harness harness(factory([](const Message& message, Context& context) {
                    book(message, context);
                    context.sql("SET LOCAL statement_timeout = 1234");
                    context.sql("SELECT pg_advisory_xact_lock(3)");
                    context.sql("CREATE TEMP TABLE gone (n int) ON COMMIT DROP");
                    if (*message.payload() == "clean") return;
                    context.sql("SET lock_timeout = 4321");
                    context.sql("CREATE TEMP TABLE kept (n int)");
                    context.sql("LISTEN news");
                    context.sql("SELECT pg_advisory_lock(1, 2)");
                    context.sql("DECLARE c CURSOR WITH HOLD FOR SELECT 1");
                    context.sql("PREPARE mine AS SELECT 1");
                  }),
                  ledger());
  harness.deliver(payment("a", "1"));
  EXPECT_THAT(harness.session_leaks(),
              ::testing::UnorderedElementsAre("the setting lock_timeout = '4321'",
                                              "the temporary table or view kept", "LISTEN news",
                                              "the advisory lock (1, 2)", "the cursor c",
                                              "the prepared statement mine"));
}

TEST(Harness, WhatEndsWithTheTransactionIsNoLeak) {
  Harness harness(factory([](const Message& message, Context& context) {
                    context.sql("SET LOCAL statement_timeout = 1234");
                    context.sql("SELECT pg_advisory_xact_lock(3)");
                    context.sql("CREATE TEMP TABLE gone (n int) ON COMMIT DROP");
                    context.pqxx();
                    book(message, context);
                  }),
                  ledger());
  EXPECT_EQ(harness.deliver(payment()).result, Result::completed);
  EXPECT_THAT(harness.session_leaks(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace kit
