// What the key of an open call keeps of its steps, and until when.
#include <gtest/gtest.h>

#include <list>
#include <pqxx/pqxx>

#include "store/operator/dead_letter_orders.hpp"
#include "store/operator/operator.hpp"
#include "store/operator/outside_orders.hpp"
#include "store/outside/calls.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using namespace std::chrono_literals;

class StepsInSql : public testing::Test {
 protected:
  StepsInSql() : session(database.worker()), me(register_holder(session, "g", "w", 1h)) {}

  CallRequest request(std::int64_t offset = 7, const std::string& payload = "f") {
    identities.push_back({"k", "", {std::string(32, payload.front()), "payload"}});
    sources.push_back({"g", "payments", 1, 0, offset});
    return {{identities.back(), scope, sources.back(), 1h}};
  }
  Take take(const CallRequest& wanted, bool again = false) {
    return take_calls(session, me, std::span(&wanted, 1), again).front();
  }
  using Answers = std::map<std::string, std::string>;
  Kept keep(const CallRequest& of, std::int64_t token, const Answers& answers,
            const Answers& before = {}) {
    const KeptSteps all{answers, "payload f"}, there{before, "payload f"};
    const StepsToKeep kept{of.claim.identity, scope, token, all, there};
    return keep_steps(session, std::span(&kept, 1)).front();
  }
  std::optional<KeptSteps> read(const CallRequest& of, std::int64_t token) {
    return read_steps(session, of.claim.identity, scope, token);
  }
  std::optional<std::int64_t> end(const CallRequest& of, std::int64_t token, CallEnd how) {
    const Message message({.coordinates = {"payments", 0, 7}, .payload = "f"});
    DeadLetter letter{.message = message, .source = of.claim.source, .reason = "outcome_unknown"};
    letter.scope = scope;
    letter.identity = &of.claim.identity;
    return end_call(session, of.claim, token, how, letter);
  }
  void end_unknown(const CallRequest& of, std::int64_t token) { end(of, token, CallEnd::unknown); }
  std::string key(const std::string& columns) {
    return database.value("SELECT " + columns + " FROM hapax.idempotency_keys");
  }
  void decide(CallDecision::What what) {
    Session operators(database.owner());
    CallDecision decision;
    decision.what = what;
    decision.who = "alice";
    decision.why = "looked";
    decision.group = "g";
    decision.retention = 1h;
    decide_call(operators, {"k", scope, ""}, decision);
  }

  test::Database database;
  Session session;
  const HolderId me;
  std::list<key::Identity> identities;
  std::list<Source> sources;
  const std::string scope = "charges";
};

TEST_F(StepsInSql, StayUnderEachLaterTakeOfTheOperation) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  EXPECT_EQ(read(wanted, token)->answers.size(), 0);
  EXPECT_EQ(keep(wanted, token, {{"charge", R"({"id":"c\u0000"})"}}), Kept::yes);
  give_call_back(session, wanted.claim, token, true);
  const CallRequest again = request(9);  // another message of the operation
  const auto later = take(again).taken;
  ASSERT_TRUE(later);
  EXPECT_EQ(read(again, later->token)->answers.at("charge"), R"({"id":"c\u0000"})");
}

TEST_F(StepsInSql, AreKeptAndReadUnderTheirOwnTokenOnly) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  EXPECT_EQ(keep(wanted, token - 1, {{"charge", "1"}}), Kept::superseded);
  EXPECT_EQ(read(wanted, token - 1), std::nullopt);
  EXPECT_EQ(key("steps IS NULL"), "t");
  keep_answers(session, std::array{KeptAnswer{wanted.claim.identity, scope, token, "1"}});
  EXPECT_EQ(keep(wanted, token, {{"charge", "1"}}), Kept::superseded) << "it is answered";
}

// By hapax's statements of this release and of the one before.
TEST_F(StepsInSql, GoWithTheOperationHoweverItEnds) {
  for (const std::string status : {"completed", "failed"}) {
    const CallRequest wanted = request();
    const auto token = take(wanted, true).taken->token;
    ASSERT_EQ(keep(wanted, token, {{"charge", "1"}}), Kept::yes);
    database.run("UPDATE hapax.idempotency_keys SET status = '" + status + "'");
    EXPECT_EQ(key("steps IS NULL"), "t") << status;
    database.run("UPDATE hapax.idempotency_keys SET status = 'failed', holder = NULL");
  }
}

TEST_F(StepsInSql, StayIfAnOperatorDecidesThatTheStepInDoubtDidNotHappen) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end_unknown(wanted, token);
  EXPECT_EQ(key("status"), "unknown");
  decide(CallDecision::What::did_not_happen);
  EXPECT_EQ(key("status, expires_at = 'infinity'"), "started|t");
  EXPECT_FALSE(take(request(8, "other payload")).taken) << "its first step is of another payload";
  const auto later = take(wanted, true).taken;
  ASSERT_TRUE(later);
  EXPECT_EQ(later->calls, 1) << "nothing is in doubt";
  EXPECT_EQ(read(wanted, later->token)->answers.at("charge"), "1");
}

// Without that replay nothing would go on with the call, and nothing would tell so.
TEST_F(StepsInSql, GoOnByAReplayThatAFilterDoesNotCancel) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end_unknown(wanted, token);
  decide(CallDecision::What::did_not_happen);
  Session operators(database.owner());
  const LetterIds letters = {std::stoll(database.value("SELECT id FROM hapax.dead_letters"))};
  const Order order{.group = "g", .who = "alice", .why = "tidy"};
  const Cancelled left = cancel_replays(operators, order, letters, false);
  EXPECT_TRUE(left.letters.empty());
  EXPECT_EQ(left.calls.at(0).at("status"), "started");
  EXPECT_EQ(cancel_replays(operators, order, letters, true).letters, letters);
}

// As `outside decide --did-not-happen` of a release before them does.
TEST_F(StepsInSql, AreForgottenByNoDecision) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end_unknown(wanted, token);
  EXPECT_THROW(database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'"),
               std::exception);
  EXPECT_EQ(key("status, steps IS NULL"), "unknown|f");
}

TEST_F(StepsInSql, ThatComeLateAreKeptForTheOperatorUnderALargerToken) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  end_unknown(wanted, token);
  EXPECT_EQ(keep(wanted, token, {{"charge", "1"}}), Kept::superseded);
  EXPECT_EQ(key("status, token > " + std::to_string(token)), "unknown|t");
  EXPECT_EQ(keep(wanted, token, {{"other", "2"}}), Kept::superseded) << "others are there";
  decide(CallDecision::What::did_not_happen);
  const auto later = take(wanted, true).taken;
  EXPECT_EQ(read(wanted, later->token)->answers, (Answers{{"charge", "1"}}));
}

// The process died in it more often than retry.max_crashes allows.
TEST_F(StepsInSql, GoOnAfterADecisionThoughTheirCallHasCrashed) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end_unknown(wanted, token);
  database.run("UPDATE hapax.idempotency_keys SET crashes = 5");
  decide(CallDecision::What::did_not_happen);
  EXPECT_EQ(take(wanted, true).taken->crashes, 0);
}

TEST_F(StepsInSql, OfACallThatWasGivenUpStayWithItsKeyAndInTheLog) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end_unknown(wanted, token);
  decide(CallDecision::What::give_up);
  EXPECT_EQ(key("status, steps IS NULL"), "completed|f");
  EXPECT_EQ(database.value("SELECT facts->'before'->'steps'->>'charge' FROM hapax.operator_log"),
            "1");
}

// As if the operation had failed: its own message runs no more, and a replay or another message
// does.
TEST_F(StepsInSql, BehindWhichNothingIsInDoubtLetAReplayGoOn) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  ASSERT_TRUE(end(wanted, token, CallEnd::resting));
  EXPECT_FALSE(end(wanted, token, CallEnd::resting)) << "its COMMIT was in doubt";
  EXPECT_EQ(key("status, calls, expires_at = 'infinity'"), "started|0|t");
  EXPECT_FALSE(take(wanted).taken) << "it is a dead letter";
  EXPECT_FALSE(take(request(8, "other payload")).taken);
  const auto again = take(wanted, true).taken;
  ASSERT_TRUE(again);
  EXPECT_EQ(again->calls, 1) << "nothing is in doubt";
  EXPECT_EQ(read(wanted, again->token)->answers.at("charge"), "1");
  give_call_back(session, wanted.claim, again->token, true);
  EXPECT_FALSE(take(wanted).taken) << "the replay waits, or was cancelled";
  const auto last = take(wanted, true).taken;
  ASSERT_TRUE(end(wanted, last->token, CallEnd::resting));
  EXPECT_TRUE(take(request(9)).taken) << "another message of the operation";
}

// An operator had its key forgotten and its message run again. Then its process died.
TEST_F(StepsInSql, OfAMessageThatRunsAgainGoOnThoughItWasADeadLetter) {
  const CallRequest wanted = request();
  end(wanted, take(wanted).taken->token, CallEnd::uncalled);
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  give_call_back(session, wanted.claim, token, true);
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'replayed'; INSERT INTO "
      "hapax.checkpoints (group_id, topic, partition, next_offset, highest, key_spec, scope) "
      "VALUES ('g', 'payments', 0, 7, 100, 'spec', 'charges')");
  decide(CallDecision::What::did_not_happen);
  EXPECT_TRUE(take(wanted).taken) << "nothing else carries the decision out";
}

// A waiting decision is not undone by a filter. A replay that nothing but an order began is.
TEST_F(StepsInSql, AtRestLetAFilterCancelTheirReplay) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end(wanted, token, CallEnd::resting);
  Session operators(database.owner());
  const LetterIds letters = {std::stoll(database.value("SELECT id FROM hapax.dead_letters"))};
  const Order order{.group = "g", .who = "alice", .why = "again"};
  CallRequest replayed = wanted;
  replayed.replay = want_replays(operators, order, letters, std::nullopt).added.front();
  give_call_back(session, wanted.claim, take(replayed, true).taken->token, true);
  EXPECT_EQ(cancel_replays(operators, order, letters, false).letters, letters);
}

// `hapax dead show` shows it.
TEST_F(StepsInSql, AreGivenUpOnAgainWithTheNewerError) {
  const CallRequest wanted = request();
  end(wanted, take(wanted).taken->token, CallEnd::uncalled);
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  end(wanted, take(wanted).taken->token, CallEnd::uncalled);
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.attempts"), "1");
}

TEST_F(StepsInSql, AtRestCanBeGivenUp) {
  const CallRequest wanted = request();
  const auto token = take(wanted).taken->token;
  keep(wanted, token, {{"charge", "1"}});
  end(wanted, token, CallEnd::resting);
  decide(CallDecision::What::give_up);
  EXPECT_EQ(key("status, steps IS NULL"), "completed|f");
  EXPECT_EQ(database.value("SELECT ended_as FROM hapax.dead_letters"), "discarded");
}

TEST_F(StepsInSql, AreListed) {
  const CallRequest wanted = request();
  keep(wanted, take(wanted).taken->token, {{"charge", "1"}, {"notify", R"("sent")"}});
  const auto calls =
      list_calls(session, {scope}, {.statuses = {"started"}, .abandoned = false}, 10);
  EXPECT_EQ(calls.at(0).at("steps"), Json({{"charge", 1}, {"notify", "sent"}}));
}

}  // namespace
}  // namespace hapax::store
