// I8: nothing forgotten runs. Below the highest checkpoint ever reached, a message runs only if
// PostgreSQL still knows it.
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

class Guard : public FlowCase {
 protected:
  // As if an operator, or a reset of Kafka's offset, lets the group go on at another offset.
  void jump(int from, int to) {
    database.run(
        "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
        "to_offset, cause, who, why) VALUES ('group', 'payments', 3, 1, " +
        std::to_string(from) + ", " + std::to_string(to) + ", 'skip', 'anna', '')");
  }
};

void refuse_today(const Message&, Context&) { throw std::runtime_error("not today"); }

// Cautious mode announces each message. That does not mean that the message is known.
TEST_F(Guard, HaltsAForgottenMessageInCautionToo) {
  for (const bool cautious : {false, true})
    EXPECT_EQ(process({.offset = 5}, book, {.guard_below = 10, .cautious = cautious}).reason,
              "unknown_below_highest");
  EXPECT_EQ(effects(), "");
}

TEST_F(Guard, HaltsAtAnUnknownMessageBelowTheHighestCheckpoint) {
  const Outcome outcome = process({.offset = 4}, book, {.guard_below = 5});
  EXPECT_EQ(outcome.result, Result::halt_partition);
  EXPECT_EQ(outcome.reason, "unknown_below_highest");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(key_row(), "");
  EXPECT_EQ(process({.offset = 5}, book, {.guard_below = 5}).result, Result::completed);
}

TEST_F(Guard, SettlesADuplicateWhoseKeyIsStillThere) {
  process({.offset = 4});
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).result, Result::duplicate);
}

TEST_F(Guard, RunsAMessageThatFailedAndWasJumpedOver) {
  EXPECT_EQ(process({.offset = 4}, refuse_today).result, Result::retry);
  jump(4, 6);
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
}

// The attempts of another group, topic generation or offset are not this message's.
TEST_F(Guard, KnowsAMessageByItsOwnCoordinatesOnly) {
  process({.offset = 4}, refuse_today);
  jump(0, 5);
  process({.offset = 5}, refuse_today);
  EXPECT_EQ(process({.offset = 5}, book, {.guard_below = 9}).result, Result::halt_partition)
      << "nobody jumped over it";
  for (const Given& given :
       {Given{.group = "other", .guard_below = 9}, Given{.generation = 2, .guard_below = 9}})
    EXPECT_EQ(process({.offset = 4}, book, given).result, Result::halt_partition);
  EXPECT_EQ(process({.offset = 3}, book, {.guard_below = 9}).result, Result::halt_partition);
}

// A zombie's failed run is recorded behind another worker's completion, which so did not forget it.
TEST_F(Guard, HaltsAtAMessageThatCompletedThoughAFailedRunOfItIsRecorded) {
  EXPECT_EQ(process({.offset = 4}).result, Result::completed);
  jump(5, 8);
  database.run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
      "last_error, handler, next_try) VALUES ('group', 'payments', 1, 3, 4, 1, '', 'booker', "
      "now())");
  database.run("DELETE FROM hapax.idempotency_keys");  // as retention does
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).reason, "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

// It stood still between its handler and the note of that failure, while another worker completed
// the message and an operator passed over it. Its note is newer than the completion that retention
// forgot.
TEST_F(Guard, HaltsAtAMessageThatAZombieFailsAfterAnotherWorkerHasCompletedIt) {
  take(3);
  take(3);
  EXPECT_EQ(process({.offset = 4}, book, {.epoch = 2}).result, Result::completed);
  jump(4, 5);
  const Outcome late = process({.offset = 4}, book, {.outages = kMaxOutages, .epoch = 1});
  EXPECT_EQ(late.result, Result::busy);
  EXPECT_EQ(late.reason, "fenced");
  EXPECT_EQ(count("hapax.attempts"), 0);
  database.run("DELETE FROM hapax.idempotency_keys");  // as retention does
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9, .epoch = 2}).reason,
            "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Guard, CountsTheFailedRunsOfThePartitionsOwner) {
  take(3);
  for (const int runs_so_far : {1, 2})
    EXPECT_EQ(process({.offset = 4}, refuse_today, {.epoch = 1}).attempts, runs_so_far);
}

TEST_F(Guard, SkipsAMessageKnownByItsDeadLetterThoughItsKeyIsGone) {
  process({.offset = 4}, [](const Message&, Context&) { throw Reject("never"); });
  database.run("DELETE FROM hapax.idempotency_keys");
  runs = 0;
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).reason, "redelivered");
  EXPECT_EQ(runs, 0);
}

// The decision `run` has lowered the highest checkpoint, and the key has expired.
TEST_F(Guard, SkipsAMessageAboveTheHighestCheckpointThatIsADeadLetterHoweverItEnded) {
  process({.offset = 4}, [](const Message&, Context&) { throw Reject("never"); });
  for (const std::string ended : {"NULL, NULL", "now(), 'replayed'", "now(), 'discarded'"}) {
    database.run(
        "DELETE FROM hapax.idempotency_keys; "
        "UPDATE hapax.dead_letters SET (ended_at, ended_as) = (" +
        ended + ")");
    const Outcome outcome = process({.offset = 4}, book, {.guard_below = 4, .has_letter = true});
    EXPECT_EQ(outcome.reason, "redelivered") << ended;
    EXPECT_EQ(key_row(), "");
  }
  EXPECT_EQ(effects(), "");
}

// The same, and it cannot even run any more: its letter is not open again.
TEST_F(Guard, LeavesALetterEndedIfItsMessageIsRefusedAboveTheHighestCheckpoint) {
  process({.offset = 4}, [](const Message&, Context&) { throw Reject("never"); });
  database.run(
      "DELETE FROM hapax.idempotency_keys; "
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  const Given given{.guard_below = 4, .attempts = 9, .has_letter = true};
  EXPECT_EQ(process({.offset = 4}, book, given).reason, "redelivered");
  EXPECT_EQ(database.value("SELECT ended_as FROM hapax.dead_letters"), "discarded");
}

// A producer's retry, given up on too, has taken the key; then the worker was killed before the
// checkpoint had passed the first.
TEST_F(Guard, SkipsAMessageKnownByItsDeadLetterThoughAnotherHasFailedUnderItsKey) {
  const Body reject = [](const Message&, Context&) { throw Reject("never"); };
  process({.offset = 4}, reject);
  process({.offset = 5}, reject);
  runs = 0;
  EXPECT_EQ(process({.offset = 4}).reason, "redelivered");
  EXPECT_EQ(runs, 0);
}

TEST_F(Guard, HaltsAtAForgottenMessageThoughAnotherHasFailedUnderItsKey) {
  process({.offset = 4});
  database.run("DELETE FROM hapax.idempotency_keys");  // as retention does
  process({.offset = 20}, [](const Message&, Context&) { throw Reject("never"); });
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).reason, "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

// Its key could not be derived before the process died.
TEST_F(Guard, SkipsAMessageWithoutAKeyThatWasGivenUpAsCrashed) {
  database.run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
      "crashes, last_error, handler, next_try) VALUES ('group', 'payments', 1, 3, 4, 0, 9, '', "
      "'booker', now())");
  EXPECT_EQ(process({.offset = 4}, book, {.cautious = true}).reason, "crashed");
  EXPECT_EQ(process({.offset = 4}, book, {.remembered = true}).reason, "redelivered");
  EXPECT_EQ(effects(), "");
}

TEST_F(Guard, RunsWhatAnOperatorHasForgottenOnPurpose) {
  process({.offset = 4});
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10 k1=10");
}

// Another message with its key completed after its failed run, and that key has expired.
TEST_F(Guard, HaltsAtAMessageThatFailedLongerAgoThanRetentionAndWasJumpedOver) {
  const auto fail = [](const Message&, Context&) { throw std::runtime_error("not yet"); };
  EXPECT_EQ(process({.offset = 4}, fail).result, Result::retry);
  database.run(
      "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
      "to_offset, cause, who, why) VALUES ('group', '" +
      route.topic + "', 3, 1, 4, 5, 'skip', '', '')");
  EXPECT_EQ(process({.offset = 20}).result, Result::completed);
  database.run("DELETE FROM hapax.idempotency_keys");  // as retention does
  database.run("UPDATE hapax.attempts SET last_at = now() - interval '" +
               std::to_string(route.retention.count() + 1) + " s'");
  const Outcome outcome = process({.offset = 4}, book, {.guard_below = 9, .attempts = 1});
  EXPECT_EQ(outcome.reason, "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

// The same, and the key expired by a shorter retention than the present one.
TEST_F(Guard, HaltsAtAMessageThatFailedBeforeWhatIsForgottenAndWasJumpedOver) {
  const auto fail = [](const Message&, Context&) { throw std::runtime_error("not yet"); };
  EXPECT_EQ(process({.offset = 4}, fail).result, Result::retry);
  jump(4, 5);
  EXPECT_EQ(process({.offset = 20}).result, Result::completed);
  database.run("DELETE FROM hapax.idempotency_keys");  // as retention does
  const Outcome outcome = process({.offset = 4}, book, {.guard_below = 9, .attempts = 1});
  EXPECT_EQ(outcome.reason, "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

// Else its coordinates would count as known and unfinished once its key has expired.
TEST_F(Guard, HaltsAtAMessageThatFailedFirstThenCompletedAndWasForgotten) {
  const auto fail = [](const Message&, Context&) { throw std::runtime_error("not yet"); };
  EXPECT_EQ(process({.offset = 4}, fail).result, Result::retry);
  EXPECT_EQ(process({.offset = 4}, book, {.attempts = 1}).result, Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0) << "it waits for nothing any more";
  database.run("DELETE FROM hapax.idempotency_keys");  // as retention does
  const Outcome outcome = process({.offset = 4}, book, {.guard_below = 5, .attempts = 1});
  EXPECT_EQ(outcome.reason, "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Guard, ForgetsTheFailedRunsOfADuplicate) {
  const auto fail = [](const Message&, Context&) { throw std::runtime_error("not yet"); };
  EXPECT_EQ(process({.offset = 4}, fail).result, Result::retry);
  EXPECT_EQ(process({.offset = 5}).result, Result::completed);  // another message, the same key
  EXPECT_EQ(process({.offset = 4}, book, {.attempts = 1}).result, Result::duplicate);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

}  // namespace
}  // namespace hapax::flow
