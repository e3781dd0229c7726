// What operators decide about open calls, as the operator's role: only about what they have seen,
// and only what a worker carries out.
#include "store/operator/outside_orders.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "store/message/replays.hpp"
#include "store/operator/inspect.hpp"
#include "store/outside/calls.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using What = CallDecision::What;

class CallOrders : public testing::Test {
 protected:
  CallOrders() {
    session.emplace(database.make_operator());
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes) "
        "VALUES ('k', 's', 'unknown', 'g', 't', 1, 0, 7, 'infinity', 100, 1, now(), false, 0); "
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
        "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
        "handler_version, scope, key, first_at) VALUES ('g', 't', 1, 0, 7, 'none', '{}', '{}', "
        "'outcome_unknown', 'no', 1, 'h', '1', 's', 'k', now())");
  }

  // Why it is refused; empty: it is decided.
  std::string decide(What what, std::optional<std::int64_t> token = {},
                     const std::string& group = "g") {
    CallDecision decision{.what = what,
                          .answer = {},
                          .group = group,
                          .token = token,
                          .who = "ann",
                          .why = "seen",
                          .retention = std::chrono::hours(1)};
    if (what == What::happened) decision.answer = "{}";
    try {
      decide_call(*session, {"k", "s", ""}, decision);
      return {};
    } catch (const Refused& refused) {
      return refused.what();
    }
  }
  std::string state() {
    return database.value(
        "SELECT (SELECT status FROM hapax.idempotency_keys), (SELECT ended_as FROM "
        "hapax.dead_letters), (SELECT string_agg(coalesce(outcome, 'open'), ' ') FROM "
        "hapax.replays)");
  }
  void replay() {
    database.run(
        "INSERT INTO hapax.replays (dead_letter, who, why, edited) VALUES (1, 'b', '', false)");
  }

  test::Database database;
  std::optional<Session> session;
};

// Another operator let it be called again meanwhile, and that call is unknown, too.
TEST_F(CallOrders, AreRefusedIfTheCallIsAnotherOne) {
  database.run("UPDATE hapax.idempotency_keys SET token = 101");
  EXPECT_THAT(decide(What::did_not_happen, 100), testing::HasSubstr("its token is 101, not 100"));
  EXPECT_EQ(state(), "unknown|null|null");
  EXPECT_EQ(decide(What::did_not_happen, 101), "");
  EXPECT_EQ(state(), "forgotten|null|open");
}

// A: an operator sees token 100 without an answer, and thinks. The call that another worker had
// given up on is answered. Then the operator confirms.
TEST_F(CallOrders, AreRefusedIfTheAnswerCameMeanwhile) {
  Session worker(database.worker());
  const key::Identity identity{"k", "", {}};
  const std::string scope = "s", answer = R"({"charge": 1})";
  const KeptAnswer late{identity, scope, 99, answer};
  EXPECT_EQ(keep_answers(worker, std::span(&late, 1)).front(), Kept::superseded);
  for (const What what : {What::happened, What::did_not_happen, What::give_up})
    EXPECT_THAT(decide(what, 100), testing::HasSubstr("its token is 101, not 100"));
  EXPECT_THAT(decide(What::did_not_happen, 101), testing::HasSubstr("--happened"));
  EXPECT_THAT(decide(What::did_not_happen), testing::HasSubstr("has answered"));
  EXPECT_EQ(state(), "unknown|null|null");
  EXPECT_EQ(database.value("SELECT answer FROM hapax.idempotency_keys"), answer);
  EXPECT_EQ(decide(What::give_up, 101), "");
}

TEST_F(CallOrders, AreRefusedIfAnotherGroupsWorkersWouldCarryThemOut) {
  for (const What what : {What::happened, What::did_not_happen, What::give_up})
    EXPECT_THAT(decide(what, {}, "renamed"), testing::HasSubstr("of group \"g\""));
  EXPECT_EQ(state(), "unknown|null|null");
  EXPECT_EQ(decide(What::happened), "");
  EXPECT_EQ(state(), "answered|null|open");
}

TEST_F(CallOrders, ThatGiveUpCancelAReplayThatNoWorkerRuns) {
  replay();
  EXPECT_EQ(decide(What::give_up), "");
  EXPECT_EQ(state(), "completed|discarded|cancelled");
}

TEST_F(CallOrders, ThatGiveUpAreRefusedWhileAReplayRuns) {
  replay();
  Session worker(database.worker());
  ASSERT_TRUE(claim_replay(worker, "g", {"t"}, "w", std::chrono::hours(1)));
  EXPECT_THAT(decide(What::give_up), testing::HasSubstr("a worker runs a replay"));
  EXPECT_EQ(state(), "unknown|null|open");
}

// Its worker lives, and goes on to renew its lease, but has nothing of it in hand any more.
TEST_F(CallOrders, AreTakenForAnAnswerWhoseMessageComesNoMore) {
  database.run(
      "INSERT INTO hapax.holders (group_id, worker, until) VALUES ('g', 'w', 'infinity');"
      "UPDATE hapax.idempotency_keys SET status = 'answered', answer = '{}', "
      "holder = (SELECT id FROM hapax.holders);"
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, key_spec, scope, next_offset) "
      "VALUES ('g', 't', 0, '', 's', 7)");
  const auto listed = [&] {
    const Json open = count_open_calls(*session, {"s"});
    EXPECT_EQ(open.at("abandoned"), list_calls(*session, {"s"}, {{}, true}, 10).size());
    return open.at("abandoned").get<int>();
  };
  EXPECT_EQ(listed(), 0) << "the message comes again";
  database.run("UPDATE hapax.checkpoints SET next_offset = 8");
  EXPECT_EQ(listed(), 1);
  replay();
  EXPECT_EQ(listed(), 0) << "a replay books it";
  EXPECT_EQ(decide(What::give_up), "");
}

// The advice is what works: no worker comes to it, neither by itself nor for a decision.
TEST_F(CallOrders, AreToldWhatWorksIfTheMessageOfAnAnswerComesNoMore) {
  database.run("UPDATE hapax.idempotency_keys SET answer = '{}'");
  database.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  for (const What what : {What::happened, What::did_not_happen})
    EXPECT_THAT(decide(what), testing::HasSubstr("no worker would carry the decision out; decide "
                                                 "--give-up, and book it by hand"));
  database.run(
      "DELETE FROM hapax.dead_letters; UPDATE hapax.idempotency_keys SET status = 'answered'; "
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, key_spec, scope, next_offset) "
      "VALUES ('g', 't', 0, '', 's', 8)");
  for (const What what : {What::happened, What::did_not_happen})
    EXPECT_THAT(decide(what), testing::HasSubstr("a worker books the answer: hapax offsets rewind "
                                                 "t/0 --to 7"));
  database.run("UPDATE hapax.checkpoints SET next_offset = 7");
  EXPECT_THAT(decide(What::did_not_happen), testing::HasSubstr("a worker books it, or decide"));
  EXPECT_EQ(decide(What::happened), "");
}

// The discard has not committed when the decision looks at the letter.
TEST_F(CallOrders, AreRefusedIfTheLetterIsDiscardedMeanwhile) {
  Session other(database.owner());
  for (const What what : {What::happened, What::did_not_happen, What::give_up}) {
    Transaction discard(other);
    discard.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
    std::string refused;
    {
      std::jthread decision([&] { refused = decide(what); });
      database.wait_until(
          "SELECT count(*) FROM pg_stat_activity WHERE usename = 'hapax_operator' AND "
          "wait_event_type = 'Lock'",
          "1");
      discard.commit();
    }
    EXPECT_THAT(refused, testing::HasSubstr("its dead letter was ended meanwhile"));
    EXPECT_EQ(state(), "unknown|discarded|null");
    database.run("UPDATE hapax.dead_letters SET ended_at = NULL, ended_as = NULL");
  }
}

TEST_F(CallOrders, AreRefusedIfAReplayWouldHaveNoMessage) {
  database.run(R"(UPDATE hapax.dead_letters SET other = '{"bytes_kept": false}')");
  for (const What what : {What::happened, What::did_not_happen})
    EXPECT_THAT(decide(what), testing::HasSubstr("was more than PostgreSQL takes, or erased"));
  EXPECT_EQ(state(), "unknown|null|null");
  EXPECT_EQ(decide(What::give_up), "");
}

// `started`, without a letter: the worker died in the call.
class CallWithoutALetter : public CallOrders {
 protected:
  CallWithoutALetter() {
    database.run(
        "DELETE FROM hapax.dead_letters; UPDATE hapax.idempotency_keys SET status = 'started'; "
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, highest, "
        "key_spec, scope) VALUES ('g', 't', 0, 7, 7, '', 's')");
  }
  void expect_refused(const std::string& because) {
    for (const What what : {What::happened, What::did_not_happen})
      EXPECT_THAT(decide(what), testing::HasSubstr(because));
    EXPECT_EQ(state(), "started|null|null");
    EXPECT_EQ(decide(What::give_up), "");
  }
};

TEST_F(CallWithoutALetter, IsDecidedAboutWhileItsMessageIsToCome) {
  EXPECT_EQ(decide(What::happened), "");
  EXPECT_EQ(state(), "answered|null|null");
}

// The worker's transaction gives the call up with a letter, and has not committed when the decision
// looks at the key. A decision without the letter would leave that open for ever.
TEST_F(CallWithoutALetter, IsGivenUpWithTheLetterThatCameMeanwhile) {
  Session worker(database.owner());
  Transaction ending(worker);
  ending.run("UPDATE hapax.idempotency_keys SET status = 'unknown', holder = NULL");
  ending.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, key, first_at) VALUES ('g', 't', 1, 0, 7, 'none', '{}', '{}', "
      "'outcome_unknown', 'no', 1, 'h', '1', 's', 'k', now())");
  std::string refused;
  {
    std::jthread decision([&] { refused = decide(What::give_up); });
    database.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'hapax_operator' AND "
        "wait_event_type = 'Lock'",
        "1");
    ending.commit();
  }
  EXPECT_EQ(refused, "");
  EXPECT_EQ(state(), "completed|discarded|null");
}

// An operator has skipped it, so that no worker would book.
TEST_F(CallWithoutALetter, IsGivenUpOnlyIfItsMessageWasPassedOver) {
  database.run("UPDATE hapax.checkpoints SET next_offset = 8, highest = 8");
  expect_refused("hapax offsets rewind t/0 --to 7");
}

// `offsets forget-group`, or the decision `copy`.
TEST_F(CallWithoutALetter, IsGivenUpOnlyIfItsGroupWasForgotten) {
  database.run("DELETE FROM hapax.checkpoints");
  expect_refused("has no checkpoint of t/0 any more");
}

TEST_F(CallWithoutALetter, IsGivenUpOnlyIfItsTopicWasMadeAgain) {
  database.run("UPDATE hapax.checkpoints SET generation = 2");
  expect_refused("is of an earlier log");
}

}  // namespace
}  // namespace hapax::store
