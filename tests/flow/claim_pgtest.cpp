// What a message finds when it claims its key: the table "State of an idempotency key" of the
// guarantees, row by row.
#include "flow/flow_case.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/erase.hpp"

namespace hapax::flow {
namespace {

using Claim = FlowCase;

TEST_F(Claim, RunsANewMessageAndKeepsItsKey) {
  const Outcome outcome = process({.offset = 7});
  EXPECT_EQ(outcome.result, Result::completed);
  EXPECT_GT(outcome.handler_time.count(), 0);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(database.value("SELECT status, scope, tenant, fingerprint_rule, "
                           "fingerprint = sha256('10'), group_id, topic, generation, partition, "
                           "kafka_offset, expires_at - created_at FROM hapax.idempotency_keys"),
            "completed|booking||payload|t|group|payments|1|3|7|01:00:00");
}

TEST_F(Claim, WaitsForAnUncommittedHolderAndIsThenBusyButNotFailed) {
  options.lock_timeout = std::chrono::milliseconds(100);
  Processor other = make_processor(2);
  Outcome inner;
  const Outcome outer = process({}, [&](const Message& message, Context& context) {
    inner = process_on(other, {.offset = 9}, book);
    book(message, context);
  });
  EXPECT_EQ(inner.result, Result::busy);
  EXPECT_EQ(inner.sqlstate, "55P03");
  EXPECT_GT(inner.wait.count(), 0);
  EXPECT_EQ(outer.result, Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(process_on(other, {.offset = 9}, book).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Claim, RunsWhenTheUncommittedHolderRollsBack) {
  Processor other = make_processor(2);
  Outcome waited;
  std::thread waiting;
  const Outcome first = process({}, [&](const Message&, Context&) {
    waiting = std::thread([&] { waited = process_on(other, {.offset = 9}, book); });
    database.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database()",
        "1");
    throw std::runtime_error("no");
  });
  waiting.join();
  EXPECT_EQ(first.result, Result::retry);
  EXPECT_EQ(waited.result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
}

// From the third on the key is looked at before it is taken: the same table holds.
TEST_F(Claim, JudgesInAFloodOfDuplicatesAsOutsideOfIt) {
  EXPECT_EQ(process({}).result, Result::completed);
  const auto flood = [&] {
    for (int i = 1; i <= 4; ++i) EXPECT_EQ(process({.offset = i}).result, Result::duplicate);
  };
  flood();
  const Outcome drift = process({.payload = "11", .offset = 5});
  EXPECT_EQ(drift.reason, "payload_drift");
  flood();
  EXPECT_EQ(process({.key = "new", .offset = 6}).result, Result::completed);
  flood();
  EXPECT_EQ(
      process({.key = "k3", .offset = 7}, [](const Message&, Context&) { throw Reject("no"); })
          .reason,
      "rejected");
  flood();
  EXPECT_EQ(process({.key = "k3", .offset = 7}).reason, "redelivered");
  flood();
  EXPECT_EQ(process({.key = "k3", .offset = 8}).result, Result::completed) << "taken over";
  flood();
  database.run(
      "UPDATE hapax.idempotency_keys SET status = 'started', topic = 'refunds' WHERE key = 'new'");
  EXPECT_EQ(process({.key = "new", .offset = 9}).reason, "key_started");
  EXPECT_EQ(effects(), "k1=10 new=10 k3=10");
}

TEST_F(Claim, SkipsADuplicateOfTheSameOperation) {
  process({.offset = 1});
  runs = 0;
  EXPECT_EQ(process({.offset = 2}).result, Result::duplicate);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(key_row(), "completed@1");
}

// A redelivery is the same message, even if a changed fingerprint rule gives it another
// fingerprint.
TEST_F(Claim, SkipsARedeliveryOfTheSameCoordinatesWithoutComparing) {
  process({.payload = "10", .offset = 1});
  EXPECT_EQ(process({.payload = "11", .offset = 1}).result, Result::duplicate);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
}

TEST_F(Claim, KeepsADriftedPayloadAsADeadLetterThatNamesBothMessages) {
  process({.payload = "10", .offset = 1});
  const std::string before = database.value("SELECT * FROM hapax.idempotency_keys");
  const Outcome outcome = process({.payload = "11", .offset = 2});
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "payload_drift");
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(database.value("SELECT * FROM hapax.idempotency_keys"), before);
  EXPECT_EQ(database.value(
                "SELECT reason, kafka_offset, convert_from(payload, 'UTF8'), key, "
                "fingerprint = sha256('11'), fingerprint_rule, other->>'kafka_offset' IS NULL, "
                "other->>'offset', other->>'partition', other->>'topic', other->>'group', "
                "other->>'generation', other->>'fingerprint' = encode(sha256('10'), 'hex'), "
                "other->>'fingerprint_rule' FROM hapax.dead_letters"),
            "payload_drift|2|11|k1|t|payload|t|1|3|payments|group|1|t|payload");
}

TEST_F(Claim, SkipsARedeliveryOfADriftedMessage) {
  process({.payload = "10", .offset = 1});
  process({.payload = "11", .offset = 2});
  EXPECT_EQ(process({.payload = "11", .offset = 2}).result, Result::failed);
  EXPECT_EQ(count("hapax.dead_letters"), 1);
}

TEST_F(Claim, SkipsARedeliveryOfADeadLetter) {
  process({.offset = 1}, [](const Message&, Context&) { throw Reject("never"); });
  runs = 0;
  const Outcome outcome = process({.offset = 1});
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "redelivered");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(key_row(), "failed@1");
  EXPECT_EQ(count("hapax.dead_letters"), 1);
}

TEST_F(Claim, RunsAFailedOperationAgainForAnotherMessageAlsoWithACorrectedPayload) {
  process({.payload = "1O", .offset = 1},
          [](const Message&, Context&) { throw Reject("not a number"); });
  EXPECT_EQ(process({.payload = "10", .offset = 2}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(database.value("SELECT status, kafka_offset, fingerprint = sha256('10'), error "
                           "FROM hapax.idempotency_keys"),
            "completed|2|t|null");
  // The first message is no duplicate: it stays the dead letter that it was.
  EXPECT_EQ(process({.payload = "1O", .offset = 1}).reason, "redelivered");
  EXPECT_EQ(database.value("SELECT reason FROM hapax.dead_letters"), "rejected");
}

TEST_F(Claim, TakesAFailedKeyOverOnlyOnceWhenTwoTryAtOnce) {
  process({.offset = 1}, [](const Message&, Context&) { throw Reject("never"); });
  Processor other = make_processor(2);
  Outcome second;
  std::thread waiting;
  const Outcome first = process({.offset = 2}, [&](const Message& message, Context& context) {
    book(message, context);
    waiting = std::thread([&] { second = settle(other, {.offset = 3}, book); });
    database.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database()",
        "1");
  });
  waiting.join();
  EXPECT_EQ(first.result, Result::completed);
  EXPECT_EQ(second.result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Claim, RunsAForgottenKeyAgain) {
  process({.offset = 1});
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(process({.payload = "12", .offset = 1}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10 k1=12");
  EXPECT_EQ(key_row(), "completed@1");
}

// docs/operating.md tells it.
TEST_F(Claim, OfAForgottenKeyMayBeADriftedDeadLetters) {
  process({.offset = 1});
  EXPECT_EQ(process({.payload = "12", .offset = 2}).reason, "payload_drift");
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(process({.payload = "12", .offset = 2}).result, Result::completed);
  EXPECT_EQ(process({.offset = 1}).reason, "payload_drift");
  EXPECT_EQ(effects(), "k1=10 k1=12");
}

// Another route of the scope calls to the outside for it.
TEST_F(Claim, WaitsForACallThatIsNotDone) {
  process({.offset = 1});
  for (const char* const status : {"started", "answered"}) {
    database.run(std::string("UPDATE hapax.idempotency_keys SET topic = 'refunds', status = '") +
                 status + "'");
    runs = 0;
    const Outcome outcome = process({.offset = 2});
    EXPECT_EQ(outcome.result, Result::busy) << status;
    EXPECT_EQ(outcome.reason, "key_started");
    EXPECT_GT(outcome.wait.count(), 0);
    EXPECT_EQ(process({.payload = "other", .offset = 3}).reason, "payload_drift") << status;
    EXPECT_EQ(runs, 0);
    database.run("DELETE FROM hapax.dead_letters");
  }
}

TEST_F(Claim, IsADeadLetterIfTheOutcomeOfTheCallIsUnknown) {
  process({.offset = 1});
  database.run("UPDATE hapax.idempotency_keys SET status = 'unknown'");
  runs = 0;
  EXPECT_EQ(process({.offset = 1}).reason, "redelivered");
  const Outcome outcome = process({.offset = 2});
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "outcome_unknown");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(key_row(), "unknown@1") << "it stays the other message's";
}

TEST_F(Claim, KeepsScopesTenantsAndGroupsApartAsPromised) {
  process({.offset = 1});
  route.key.scope = "invoicing";
  EXPECT_EQ(process({.offset = 1}).result, Result::completed);
  route.key.tenant = key::Source{key::Source::Kind::header, {"tenant"}};
  EXPECT_EQ(process({.offset = 1, .headers = {{"tenant", "acme"}}}).result, Result::completed);
  // Two groups of one scope share their effects.
  route.key.scope = "booking";
  route.key.tenant.reset();
  EXPECT_EQ(process({.offset = 5}, book, {.group = "other"}).result, Result::duplicate);
  EXPECT_EQ(runs, 3);
}

// The key of another group's message is no redelivery of ours, and neither is an old topic's.
TEST_F(Claim, TellsRedeliveriesByGroupAndGenerationToo) {
  process({.payload = "10", .offset = 1});
  EXPECT_EQ(process({.payload = "11", .offset = 1}, book, {.group = "other"}).reason,
            "payload_drift");
  EXPECT_EQ(process({.payload = "11", .offset = 1}, book, {.generation = 2}).reason,
            "payload_drift");
}

TEST_F(Claim, ComparesUnderTheStoredFingerprintRuleIfItIsKnown) {
  process({.payload = R"({"a":1})", .offset = 1});
  route.key.fingerprint.kind = key::FingerprintRule::Kind::json;
  EXPECT_EQ(process({.payload = R"({"a":1})", .offset = 2}).result, Result::duplicate);
  // Equal as JSON, but the stored rule compares bytes.
  EXPECT_EQ(process({.payload = R"({"a": 1})", .offset = 3}).reason, "payload_drift");
}

TEST_F(Claim, TakesAnUnknownFingerprintRuleForADuplicate) {
  process({.offset = 1});
  database.run("UPDATE hapax.idempotency_keys SET fingerprint_rule = 'json-9'");
  EXPECT_EQ(process({.payload = "11", .offset = 2}).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Claim, OfARecordThatWasGivenUpOnIsNotTakenOverByItsCopies) {
  const auto sent = [](std::int64_t offset, const char* origin, const char* payload = "10") {
    return Sent{.payload = payload, .offset = offset, .headers = {{"hapax-origin", origin}}};
  };
  const auto reject = [](const Message&, Context&) { throw Reject("no"); };
  EXPECT_EQ(process(sent(1, "g/t/1/0/5"), reject).result, Result::failed);
  EXPECT_EQ(process(sent(2, "g/t/1/0/5"), book).reason, "redelivered");
  EXPECT_EQ(database.value("SELECT status, kafka_offset FROM hapax.idempotency_keys"), "failed|1");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.dead_letters"), 1);
  EXPECT_EQ(runs, 1);
  // Another payload is no copy, and another origin is another message of the operation.
  EXPECT_EQ(process(sent(3, "g/t/1/0/5", "20"), reject).result, Result::failed);
  EXPECT_EQ(process(sent(4, "g/t/1/0/6", "20"), book).result, Result::completed);
}

TEST_F(Claim, OfARecordWhoseLetterWasErasedIsNotTakenOverByItsCopies) {
  const auto sent = [](std::int64_t offset) {
    return Sent{.payload = "Bob", .offset = offset, .headers = {{"hapax-origin", "g/t/1/0/5"}}};
  };
  process(sent(1), [](const Message&, Context&) { throw Reject("no"); });
  database.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  test::erase(database, "Bob");
  EXPECT_EQ(database.value("SELECT error FROM hapax.dead_letters"), "erased");
  EXPECT_EQ(process(sent(2), book).reason, "redelivered");
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace hapax::flow
