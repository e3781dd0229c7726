// A release whose handler called to the outside is followed by one whose handler does not.
#include <gmock/gmock.h>

#include "flow/flow_case.hpp"
#include "key/identity.hpp"
#include "store/outside/calls.hpp"

namespace hapax::flow {
namespace {

class OpenCall : public FlowCase {
 protected:
  void leave(const std::string& status, const std::string& lease) {
    database.run(
        "INSERT INTO hapax.holders (id, group_id, worker, until) OVERRIDING SYSTEM VALUE VALUES "
        "(1, 'group', 'w', now() + interval '" +
        lease +
        "'); "
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, holder, token, calls, called_at, alone, crashes) "
        "VALUES ('k1', 'booking', '" +
        status +
        "', 'group', 'payments', 1, 3, 0, 'infinity', 1, "
        "100, 1, now(), false, 0)");
  }
};

TEST_F(OpenCall, HaltsARouteThatDoesNotCall) {
  leave("started", "-1 second");
  const Outcome outcome = process({});
  EXPECT_EQ(outcome.result, Result::halt_partition);
  EXPECT_EQ(outcome.reason, "open_call");
  EXPECT_EQ(runs, 0);
}

TEST_F(OpenCall, WithItsAnswerHaltsARouteThatDoesNotCall) {
  leave("answered", "1 hour");
  EXPECT_EQ(process({}).reason, "open_call");
  EXPECT_EQ(runs, 0);
}

// As in a rolling deploy: the earlier release ends it, or its lease ends.
TEST_F(OpenCall, IsWaitedForWhileAWorkerOfTheEarlierReleaseCalls) {
  leave("started", "1 hour");
  const Outcome outcome = process({});
  EXPECT_FALSE(is_halt(outcome.result));
  EXPECT_EQ(outcome.reason, "key_started");
  EXPECT_EQ(runs, 0);
}

// Its call was given up behind a step that is done. No worker goes on by itself.
class CallAtRest : public OpenCall {
 protected:
  CallAtRest() {
    leave("started", "-1 second");
    database.run(
        "UPDATE hapax.idempotency_keys SET holder = NULL, calls = 0, error = 'away', "
        "topic = 'orders'");
  }
};

TEST_F(CallAtRest, IsNotWaitedForByARouteThatDoesNotCall) {
  database.run(
      "UPDATE hapax.idempotency_keys SET fingerprint = sha256('10'), fingerprint_rule = 'payload'");
  const Outcome outcome = process({});
  EXPECT_EQ(outcome.reason, "outcome_unknown");
  EXPECT_THAT(outcome.detail, testing::HasSubstr("replay its dead letter"));
  EXPECT_EQ(runs, 0);
}

// The earlier release took payloads by their bytes, this one takes them as JSON. The message that
// began the call does not come again.
class OpenCallOfAnotherRule : public OpenCall {
 protected:
  OpenCallOfAnotherRule() {
    route.outside.emplace();
    route.key.fingerprint = {key::FingerprintRule::Kind::json, {}};
    leave("started", "-1 second");
    database.run(
        "UPDATE hapax.idempotency_keys SET fingerprint = sha256('10'), fingerprint_rule = "
        "'payload', kafka_offset = 7");
  }

  std::string rule() {
    return database.value("SELECT fingerprint_rule FROM hapax.idempotency_keys");
  }

  bool is_taken(const key::Fingerprint& fingerprint) {
    store::Session session(options);
    const auto holder = store::register_holder(session, "group", "w2", std::chrono::minutes(1));
    const store::CallRequest wanted{
        {.identity = {"k1", "", fingerprint},
         .scope = "booking",
         .source = {.group = "group", .topic = "payments", .generation = 1, .partition = 3}}};
    return store::take_calls(session, holder, std::span(&wanted, 1)).front().taken.has_value();
  }
};

TEST_F(OpenCallOfAnotherRule, IsTakenOverByAMessageWithItsPayload) {
  Message::Parts parts;
  parts.payload = "10";
  const auto mine =
      std::get<key::Fingerprint>(key::fingerprint(route.key.fingerprint, Message(parts)));
  EXPECT_FALSE(is_taken(mine));
  EXPECT_EQ(process({}).reason, "key_started");
  EXPECT_EQ(rule(), mine.rule);
  EXPECT_TRUE(is_taken(mine));
}

TEST_F(OpenCallOfAnotherRule, KeepsItsFingerprintIfTheMessageHasAnotherPayload) {
  EXPECT_EQ(process({.payload = "11"}).reason, "payload_drift");
  EXPECT_EQ(rule(), "payload");
}

}  // namespace
}  // namespace hapax::flow
