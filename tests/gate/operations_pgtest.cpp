// When keys of accepted requests expire, and that only durable outcomes are told.
#include <gmock/gmock.h>

#include "gate/accept_case.hpp"
#include "store/outside/calls.hpp"
#include "store/worker/retention.hpp"
#include "support/erase.hpp"

namespace hapax::gate {
namespace {

using testing::HasSubstr;

class OperationsKept : public AcceptCase {
 protected:
  // What the gate does every 10 s.
  void look_for_outcomes() {
    store::Session session(options);
    const auto operations = Operations::of(config);
    store::WaitingOperation after;
    while (!operations->settle_page(session, after).was_last) {
    }
  }

  // As if so much time had passed for the worker's and the gate's keys.
  void pass(const std::string& interval) {
    database.run("UPDATE hapax.idempotency_keys SET expires_at = expires_at - interval '" +
                 interval + "', updated_at = updated_at - interval '" + interval +
                 "', created_at = created_at - interval '" + interval + "'");
  }
  void remove_expired() {
    store::Session session(options);
    store::expire_keys(session, 1000, "-infinity", {}, database.value("SELECT now()::text"));
  }
  int keys_of(const std::string& scope) {
    return database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE scope = '" + scope +
                          "'");
  }
};

TEST_F(OperationsKept, AKeyWaitsForTheOutcomeAndCountsFromIt) {
  const std::string at = post("k1").header("location");
  pass("300 days");
  look_for_outcomes();
  remove_expired();
  EXPECT_EQ(keys_of("gate"), 1);
  EXPECT_EQ(look(at).status, 202);
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  work(book);
  EXPECT_EQ(expires(), "waits");
  look_for_outcomes();
  EXPECT_EQ(expires(), "true");  // a week from now
  EXPECT_NE(post("k1").header("idempotency-key-expires"), "");
  EXPECT_EQ(look(at).status, 200);
}

TEST_F(OperationsKept, AnOutcomeThatIsTakenBackIsNone) {
  const std::string at = post("k1").header("location");
  work(book);
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten' WHERE scope = 'booking'");
  look_for_outcomes();
  EXPECT_EQ(expires(), "waits");
  EXPECT_EQ(look(at).status, 202);
}

// An operator lets the message run again, or the replay of its letter calls to the outside.
TEST_F(OperationsKept, WhatRunsAgainAfterItsOutcomeWasSeenIsPending) {
  const std::string at = post("k1").header("location");
  work([](const Message&, Context&) { throw Reject("no"); });
  EXPECT_THAT(look(at).body, HasSubstr("failed"));
  for (const std::string status : {"forgotten", "started", "answered", "unknown"}) {
    database.run("UPDATE hapax.idempotency_keys SET status = '" + status +
                 "' WHERE scope = 'booking'");
    EXPECT_EQ(look(at).status, 202) << status;
  }
}

TEST_F(OperationsKept, TheFirstLookAtAnOutcomeCountsToo) {
  const std::string at = post("k1").header("location");
  work([](const Message&, Context&) { throw Reject("no"); });
  EXPECT_EQ(expires(), "waits");
  EXPECT_EQ(look(at).status, 200);
  EXPECT_EQ(expires(), "true");
}

TEST_F(OperationsKept, AResultIsGoneWithEitherKey) {
  const std::string at = post("k1").header("location");
  const std::string other = post("k2").header("location");
  work(book);
  look_for_outcomes();
  pass("25 hours");  // the worker keeps its keys for a day
  remove_expired();
  EXPECT_EQ(keys_of("booking"), 0);
  EXPECT_EQ(look(at).status, 410);
  pass("144 hours");
  remove_expired();
  EXPECT_EQ(keys_of("gate"), 0);
  EXPECT_EQ(look(other).status, 410);
  EXPECT_EQ(ask(request("GET", at, as_bob())).status, 404);
}

// The gate forgets its key an hour after the outcome, and the worker a day after it.
class OperationsForgotten : public OperationsKept {
 protected:
  OperationsForgotten() {
    config.gate.retention = std::chrono::hours(1);
    for (config::Route& route : config.base.routes) route.retention = config.gate.retention;
  }
  void forget() {
    look_for_outcomes();
    pass("2 hours");
    // The removal passes over a key that the gate looks at just then, which it does as it starts.
    for (const auto until = std::chrono::steady_clock::now() + kGatePatience;
         keys_of("gate") > 0 && std::chrono::steady_clock::now() < until;)
      remove_expired();
    ASSERT_EQ(keys_of("gate"), 0);
    ASSERT_EQ(keys_of("booking"), 1);
  }
  static void refuse(const Message& /*message*/, Context& /*context*/) { throw Reject("no"); }
};

TEST_F(OperationsForgotten, AnotherRequestUnderTheKeyIsAnotherOperation) {
  const std::string at = post("k1", "10").header("location");
  work(book);
  forget();
  EXPECT_EQ(post("k1", "20").header("location"), at);
  EXPECT_EQ(look(at).status, 202);
  EXPECT_EQ(expires(), "waits");
  look_for_outcomes();
  EXPECT_EQ(expires(), "waits");
  EXPECT_EQ(work(book).result, flow::Result::completed);
  EXPECT_EQ(look(at).status, 200);
  EXPECT_EQ(database.count("SELECT count(*) FROM effects"), 2);
}

TEST_F(OperationsForgotten, ARequestOfAHandlersRouteUnderTheKeyLeavesItGone) {
  config.gate.routes.insert(config.gate.routes.begin(), config::GateRoute{"/plain"});
  config::Route base = config.base.routes.front();
  base.topic = "/plain";
  base.handler = {};
  config.base.routes.insert(config.base.routes.begin(), base);
  const std::string at = post("k1").header("location");
  work(book);
  database.run("DELETE FROM hapax.idempotency_keys");
  EXPECT_EQ(look(at).status, 410);
  EXPECT_EQ(post("k1", "10", {}, "/plain").status, 201);
  EXPECT_EQ(look(at).status, 410);
}

// The record takes the failed key over and runs, so what came of the first is no answer.
TEST_F(OperationsForgotten, WhatWasGivenUpBeforeIsNotTheOutcome) {
  const std::string at = post("k1").header("location");
  work(refuse);
  forget();
  EXPECT_EQ(post("k1").status, 202);
  EXPECT_THAT(look(at).body, HasSubstr("pending"));
  look_for_outcomes();
  EXPECT_EQ(expires(), "waits");
  EXPECT_EQ(work(book).result, flow::Result::completed);
  EXPECT_THAT(look(at).body, HasSubstr("completed"));
}

// The record of the first acceptance fails while that of the second one waits.
TEST_F(OperationsForgotten, AFailureOfAnEarlierAcceptanceIsNotTheOutcome) {
  const std::string at = post("k1").header("location");
  database.run("DELETE FROM hapax.idempotency_keys WHERE scope = 'gate'");
  EXPECT_EQ(post("k1").status, 202);
  EXPECT_EQ(work_next(refuse).result, flow::Result::failed);
  look_for_outcomes();
  EXPECT_EQ(expires(), "waits");
  EXPECT_THAT(look(at).body, HasSubstr("pending"));
  EXPECT_EQ(work(book).result, flow::Result::completed);
  EXPECT_THAT(look(at).body, HasSubstr("completed"));
}

TEST_F(OperationsForgotten, AnErasedFailureOfAnEarlierAcceptanceIsNotTheOutcome) {
  const std::string at = post("k1").header("location");
  EXPECT_EQ(work(refuse).result, flow::Result::failed);
  database.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  test::erase(database, "found nowhere", "{1}");
  EXPECT_THAT(look(at).body, HasSubstr("failed"));
  database.run("DELETE FROM hapax.idempotency_keys WHERE scope = 'gate'");
  EXPECT_EQ(post("k1").status, 202);
  look_for_outcomes();
  EXPECT_EQ(expires(), "waits");
  EXPECT_THAT(look(at).body, HasSubstr("pending"));
}

// The handler may have committed a part before the partition halted.
TEST_F(OperationsKept, WhatAnOperatorSkippedIsNeitherCompletedNorFailed) {
  const std::string at = post("k1").header("location");
  const std::string why = "ops: a part took effect";
  EXPECT_EQ(work_next(book, &why).reason, "skipped_by_operator");
  EXPECT_THAT(look(at).body, HasSubstr(R"("status":"unknown")"));
  EXPECT_THAT(look(at).body, HasSubstr("may have taken effect"));
}

// The clock of PostgreSQL goes back by an hour between the acceptance and the worker's outcome, or
// between the failure and the next acceptance.
TEST_F(OperationsForgotten, AFailureIsTheOutcomeAtAnyTimeOfTheClock) {
  const std::string at = post("k1").header("location");
  work(refuse);
  database.run(
      "UPDATE hapax.idempotency_keys SET updated_at = updated_at - interval '1 hour' "
      "WHERE scope = 'booking'");
  EXPECT_THAT(look(at).body, HasSubstr("rejected"));
  forget();
  database.run(
      "UPDATE hapax.idempotency_keys SET updated_at = now() + interval '1 hour' "
      "WHERE scope = 'booking'");
  EXPECT_EQ(post("k1").status, 202);
  look_for_outcomes();
  EXPECT_EQ(expires(), "waits");
  EXPECT_THAT(look(at).body, HasSubstr("pending"));
  work(refuse);
  EXPECT_THAT(look(at).body, HasSubstr("rejected"));
}

// The worker's key has expired, too, and is removed once the record has been a duplicate.
TEST_F(OperationsForgotten, TheSameRequestHasAnOutcomeThoughTheWorkersKeyHadExpired) {
  const std::string at = post("k1").header("location");
  work(book);
  look_for_outcomes();
  pass("25 hours");
  database.run("DELETE FROM hapax.idempotency_keys WHERE scope = 'gate'");
  EXPECT_EQ(post("k1").status, 202);
  EXPECT_EQ(work(book).result, flow::Result::duplicate);
  remove_expired();
  EXPECT_THAT(look(at).body, HasSubstr("completed"));
  EXPECT_EQ(database.count("SELECT count(*) FROM effects"), 1);
  pass("2 hours");
  remove_expired();
  EXPECT_EQ(keys_of("booking"), 0);
  EXPECT_EQ(look(at).status, 410);
}

TEST_F(OperationsKept, WhatAnOperatorGaveUpIsNeitherCompletedNorRefused) {
  const std::string at = post("k1").header("location");
  work(book);
  database.run(
      "UPDATE hapax.idempotency_keys SET error = 'given up by ops: booked by hand', result = NULL "
      "WHERE scope = 'booking'");
  const Reply reply = look(at);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr(R"("status":"unknown")"));
  EXPECT_THAT(reply.body, HasSubstr("urn:hapax:gate:outcome-unknown"));
  EXPECT_THAT(reply.body, testing::Not(HasSubstr("by hand")));
}

TEST_F(OperationsKept, ARefusalInTheWordsOfAnOperatorIsARefusal) {
  const std::string at = post("k1").header("location");
  const key::Identity identity{record_key("k1"), "", {}};
  work(book);
  database.run(
      "UPDATE hapax.idempotency_keys SET status = 'started', token = 7, calls = 1, result = NULL, "
      "called_at = now() WHERE scope = 'booking'");
  store::Session session(options);
  const store::Source source{"bookers", "requests", 1, 0, 0};
  const std::string scope = "booking";
  ASSERT_TRUE(store::end_replayed_call(session, {identity, scope, source, std::chrono::hours(24)},
                                       7, store::CallEnd::refused,
                                       "given up by the bank: the account is closed"));
  const Reply reply = look(at);
  EXPECT_THAT(reply.body, HasSubstr(R"("status":"failed")"));
  EXPECT_THAT(reply.body, HasSubstr("The other side refused it."));
}

// An operator let the message run again. The letter keeps its first reason, and the key has the
// words of the newer failure.
TEST_F(OperationsKept, WordsOfAnErrorAreNotShownThoughTheMessageWasRejectedBefore) {
  const std::string at = post("k1").header("location");
  database.run("CREATE TABLE sent AS SELECT * FROM hapax.outbox");
  work([](const Message&, Context&) { throw Reject("no money"); });
  EXPECT_THAT(look(at).body, HasSubstr("no money"));
  database.run(
      "UPDATE hapax.idempotency_keys SET status = 'forgotten', error = NULL WHERE scope = "
      "'booking'");
  database.run("INSERT INTO hapax.outbox OVERRIDING SYSTEM VALUE SELECT * FROM sent");
  offset = 0;
  work([](const Message&, Context&) { throw std::runtime_error("host db-7 is away"); });
  const Reply reply = look(at);
  EXPECT_THAT(reply.body, HasSubstr(R"("status":"failed")"));
  EXPECT_THAT(reply.body, HasSubstr("urn:hapax:gate:failed"));
  EXPECT_THAT(reply.body, testing::Not(HasSubstr("db-7")));
}

TEST_F(OperationsKept, ARetryIsToldThePlaceByTheKeyOfToday) {
  const std::string at = post("k1").header("location");
  config.gate.operations_key = std::string(64, 'x');
  const auto rotated = make_gate();
  const Reply again = ask(request("POST", "/payments", keyed("k1"), "10"), rotated->gate.port());
  EXPECT_EQ(again.header("idempotent-replayed"), "true");
  EXPECT_NE(again.header("location"), at);
  const std::string there = request("GET", again.header("location"), as_ann());
  EXPECT_EQ(ask(there, rotated->gate.port()).status, 202);
}

TEST_F(OperationsKept, AGateWithoutTheRouteDoesNotTellThatItIsGone) {
  const std::string at = post("k1").header("location");
  config.gate.routes.front().path = config.base.routes.front().topic = "/refunds";
  const auto other = make_gate();
  EXPECT_EQ(ask(request("GET", at, as_ann()), other->gate.port()).status, 503);
  EXPECT_EQ(look(at).status, 202);
}

TEST_F(OperationsKept, WhoMayNotCallTheRouteSeesNothingOfIt) {
  const std::string at = post("k1").header("location");
  config.gate.routes.front().tenants = {"bob"};
  const auto other = make_gate();
  EXPECT_EQ(ask(request("GET", at, as_ann()), other->gate.port()).status, 404);
}

// The gate has forgotten the key, and a client comes again. The worker has not.
TEST_F(OperationsKept, ASecondAcceptanceIsTheSameOperation) {
  config.gate.retention = std::chrono::hours(1);
  for (config::Route& route : config.base.routes) route.retention = config.gate.retention;
  const std::string at = post("k1").header("location");
  work(book);
  look_for_outcomes();
  pass("2 hours");
  remove_expired();
  const Reply again = post("k1");
  EXPECT_EQ(again.header("idempotent-replayed"), "");
  EXPECT_EQ(again.header("location"), at);
  EXPECT_EQ(work(book).result, flow::Result::duplicate);
  EXPECT_EQ(database.count("SELECT count(*) FROM effects"), 1);
  EXPECT_EQ(look(at).status, 200);
}

TEST_F(OperationsKept, ManyAreLookedAtPageByPage) {
  (void)port();
  constexpr int kMany = 1203;  // three pages
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, group_id, topic, "
      "generation, "
      "partition, kafka_offset, fingerprint, expires_at) SELECT 'k' || i, 'gate', 'ann', "
      "'completed', "
      "'gate', '/payments', 0, 0, i, '\\xab', now() + interval '100 years' FROM "
      "generate_series(1, " +
      std::to_string(kMany) + ") i");
  const std::string record = record_key("k999");
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) VALUES ('" +
      record +
      "', 'booking', 'completed', 'bookers', 'requests', 1, 0, 7, now() + interval '1 day')");
  look_for_outcomes();
  EXPECT_EQ(database.value("SELECT key FROM hapax.idempotency_keys WHERE scope = 'gate' AND "
                           "expires_at < now() + interval '50 years'"),
            "k999");
}

TEST_F(OperationsKept, OnlyAResultOnTheDiskIsAnswered) {
  const std::string at = post("k1").header("location");
  work(book);
  database.run(
      "CREATE TABLE commits (setting text); GRANT INSERT ON commits TO hapax_worker;"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER last AFTER INSERT OR UPDATE ON hapax.idempotency_keys "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();"
      "ALTER ROLE hapax_worker SET synchronous_commit = off");
  const auto fresh = make_gate();
  const std::string text = request("GET", at, as_ann());
  {
    // The write does not come through, so there is no answer.
    store::Session holder(database.owner());
    store::Transaction held(holder);
    held.run("SELECT FROM hapax.idempotency_keys WHERE scope = 'gate' FOR UPDATE");
    EXPECT_EQ(ask(text, fresh->gate.port()).status, 503);
    held.rollback();
  }
  EXPECT_EQ(ask(text, fresh->gate.port()).status, 200);
  EXPECT_EQ(database.value("SELECT DISTINCT setting FROM commits"), "on");
  database.run("TRUNCATE commits");
  EXPECT_EQ(ask(text, fresh->gate.port()).status, 200);
  EXPECT_EQ(database.count("SELECT count(*) FROM commits"), 0);
  // A replay changes the outcome, and its COMMIT may be asynchronous, too.
  database.run(
      "UPDATE hapax.idempotency_keys SET updated_at = now() + interval '1 s' WHERE scope = "
      "'booking'");
  database.run("TRUNCATE commits");
  EXPECT_EQ(ask(text, fresh->gate.port()).status, 200);
  EXPECT_EQ(database.value("SELECT DISTINCT setting FROM commits"), "on");
  database.run("ALTER ROLE hapax_worker RESET synchronous_commit");
}

}  // namespace
}  // namespace hapax::gate
