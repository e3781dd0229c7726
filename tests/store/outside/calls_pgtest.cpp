// The keys of calls to the outside, statement by statement: which worker may take one. What a
// statement does if it comes twice, too late, or beside another one.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <future>
#include <list>
#include <pqxx/pqxx>
#include <sstream>

#include "store/outside/answer_claims.hpp"
#include "store/outside/calls.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using namespace std::chrono_literals;

class OutsideCallsInSql : public testing::Test {
 protected:
  OutsideCallsInSql() : session(database.worker()), me(register_holder(session, "g", "w", 1h)) {}

  // Message `offset` of a topic, with its key and payload.
  CallRequest request(const std::string& key, std::int64_t offset = 7,
                      const std::string& payload = "f") {
    identities.push_back({key, "", {std::string(32, payload.front()), "payload"}});
    sources.push_back({"group", "payments", 1, 0, offset});
    return {{identities.back(), scope, sources.back(), 1h}};
  }
  Take take(const CallRequest& wanted, HolderId holder) {
    return take_calls(session, holder, std::span(&wanted, 1)).front();
  }
  TakenCall taken(const CallRequest& wanted, HolderId holder) {
    const Take took = take(wanted, holder);
    return took.taken.value_or(TakenCall{});
  }
  bool keep(const CallRequest& of, std::int64_t token, const std::string& answer) {
    const KeptAnswer kept{of.claim.identity, scope, token, answer};
    return keep_answers(session, std::span(&kept, 1)).front() == Kept::yes;
  }
  void release(const CallRequest& of, HolderId holder, bool uncalled = true) {
    const HeldKey held{of.claim.identity, scope, holder, uncalled};
    release_calls(session, std::span(&held, 1));
  }
  std::string key(const std::string& columns) {
    return database.value("SELECT " + columns + " FROM hapax.idempotency_keys WHERE key = 'k'");
  }
  // How many of the keys a and k a take gets that waits while `meanwhile` runs. take_calls() waits
  // at most 50 ms. The statement itself has no bound, so a slow machine does not end the test's
  // wait.
  int taken_after(const std::function<void()>& meanwhile) {
    pqxx::connection connection(database.owner().url);
    pqxx::work blocker(connection);
    blocker.exec(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at) VALUES ('a', 'charges', 'completed', 'g', 't', 1, 0, "
        "1, now())");
    std::ostringstream statement;
    statement << std::ifstream(test::source_folder() / "sql/outside/take_calls.sql").rdbuf();
    auto waiting = std::async(std::launch::async, [&] {
      pqxx::connection late(database.owner().url);
      pqxx::work work(late);
      const auto taken = work.exec_params(statement.str(), "{a,k}", "{charges,charges}",
                                          R"({"",""})", R"({"\\x66","\\x66"})", "{payload,payload}",
                                          "{group,group}", "{payments,payments}", "{1,1}", "{0,0}",
                                          "{6,7}", "{0,0}", "{f,f}", std::to_string(me), "false");
      work.commit();
      return static_cast<int>(taken.size());
    });
    database.wait_until("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
                        "1");
    meanwhile();
    blocker.abort();
    return waiting.get();
  }
  // A lease that was over a moment ago.
  HolderId dead_holder() {
    const HolderId dead = register_holder(session, "g", "dead", 1h);
    database.run("UPDATE hapax.holders SET until = now() - interval '1 second' WHERE id = " +
                 std::to_string(dead));
    return dead;
  }

  test::Database database;
  Session session;
  const HolderId me;
  std::list<key::Identity> identities;
  std::list<Source> sources;
  const std::string scope = "charges";
};

struct Found {
  const char* name;
  const char* status;
  enum class Holder { none, live, dead } holder;
  std::int64_t offset;  // of the message that comes; 7 has the key
  const char* payload;
  bool is_taken, is_held;
  int calls;  // after a take
};
constexpr auto kNone = Found::Holder::none, kLive = Found::Holder::live,
               kDead = Found::Holder::dead;
// The key was taken twice before.
constexpr Found kFound[] = {
    {"OfALiveHolder", "started", kLive, 7, "f", false, true, 0},
    {"OfADeadHolder", "started", kDead, 7, "f", true, false, 3},
    {"GivenBack", "started", kNone, 7, "f", true, false, 3},
    {"GivenBackForACopy", "started", kNone, 8, "f", true, false, 3},
    {"GivenBackForAnotherPayload", "started", kNone, 8, "g", false, false, 0},
    {"Answered", "answered", kLive, 7, "f", true, false, 2},
    {"AnsweredForAnotherPayload", "answered", kDead, 8, "g", false, false, 0},
    {"Unknown", "unknown", kNone, 7, "f", false, false, 0},
    {"Completed", "completed", kNone, 7, "f", false, false, 0},
    {"Failed", "failed", kNone, 8, "g", true, false, 1},
    {"Forgotten", "forgotten", kNone, 8, "g", true, false, 1}};

class TakeOfAKeyThatIs : public OutsideCallsInSql, public testing::WithParamInterface<Found> {};
INSTANTIATE_TEST_SUITE_P(All, TakeOfAKeyThatIs, testing::ValuesIn(kFound),
                         [](const auto& found) { return found.param.name; });

TEST_P(TakeOfAKeyThatIs, IsGrantedOrRefused) {
  const Found& found = GetParam();
  const std::int64_t before = taken(request("k"), me).token;
  const HolderId other =
      found.holder == kDead ? dead_holder() : register_holder(session, "g", "other", 1h);
  database.run("UPDATE hapax.idempotency_keys SET calls = 2, status = '" +
               std::string(found.status) +
               "', holder = " + (found.holder == kNone ? "NULL" : std::to_string(other)) +
               ", answer = CASE WHEN '" + found.status + "' = 'answered' THEN '{}'::json END");
  const Take took = take(request("k", found.offset, found.payload), me);
  EXPECT_EQ(took.taken.has_value(), found.is_taken);
  EXPECT_EQ(took.is_held, found.is_held);
  if (!took.taken) return;
  EXPECT_GT(took.taken->token, before);
  EXPECT_EQ(took.taken->calls, found.calls);
  EXPECT_EQ(took.taken->answer.has_value(), std::string(found.status) == "answered");
}

// The server that took over knows neither the holder nor that its id was given.
TEST_F(OutsideCallsInSql, GiveNoHolderTheIdOfAnotherThatALostTailForgot) {
  const auto lose = [&] {
    database.run("DELETE FROM hapax.holders");
    database.run("SELECT setval('hapax.holders_id_seq', 1, false)");
  };
  lose();
  const HolderId first = register_holder(session, "g", "w", 1h);
  lose();
  EXPECT_NE(register_holder(session, "g", "other", 1h), first);
  EXPECT_FALSE(renew_holder(session, first, 1h)) << "it renews another's lease";
}

TEST_F(OutsideCallsInSql, TakeNothingUnderALeaseThatIsOver) {
  EXPECT_FALSE(take(request("k"), dead_holder()).taken);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.idempotency_keys"), 0);
}

// Its worker stood still behind its look at the replay. Meanwhile the claim ran out, and an
// operator discarded the letter, or another worker claimed the replay.
TEST_F(OutsideCallsInSql, TakeNothingForAReplayThatIsNotItsRunsAnyMore) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, key, first_at) VALUES ('group', 'payments', 1, 0, 7, 'none', '{}', "
      "'{}', 'rejected', 'no', 1, 'h', '1', 'charges', 'k', now()); "
      "INSERT INTO hapax.replays (dead_letter, who, why, runs, ended_at) "
      "SELECT id, 'ann', '', 1, now() FROM hapax.dead_letters");
  CallRequest of_replay = request("k");
  of_replay.replay = std::stoll(database.value("SELECT id FROM hapax.replays"));
  of_replay.runs = 1;
  EXPECT_EQ(taken(of_replay, me).token, 0);
  database.run("UPDATE hapax.replays SET ended_at = NULL, runs = 2");
  EXPECT_EQ(taken(of_replay, me).token, 0);
  of_replay.runs = 2;
  EXPECT_GT(taken(of_replay, me).token, 0);
}

TEST_F(OutsideCallsInSql, LeaveTheKeyOfAHolderThatCameWhileTheTakeWaited) {
  const int of_two = taken_after(
      [&] { EXPECT_TRUE(take(request("k"), register_holder(session, "g", "new", 1h)).taken); });
  EXPECT_EQ(of_two, 1) << "else two would call";
  EXPECT_EQ(key("calls"), "1");
}

// The statement cannot see the letter, which tells that the message was given up.
TEST_F(OutsideCallsInSql, LeaveTheKeyOfTheirMessageThatWasGivenUpWhileTheTakeWaited) {
  for (const std::string status : {"failed", "started"}) {  // started: behind steps that are done
    database.run("DELETE FROM hapax.idempotency_keys; DELETE FROM hapax.dead_letters");
    taken(request("k"), me);
    const int of_two = taken_after([&] {  // as end_call() does
      database.run("UPDATE hapax.idempotency_keys SET holder = NULL, error = 'no', status = '" +
                   status +
                   "' WHERE key = 'k'; "
                   "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, "
                   "kafka_offset, timestamp_type, header_names, header_values, reason, error, "
                   "attempts, handler, handler_version, scope, key, first_at) VALUES ('group', "
                   "'payments', 1, 0, 7, 'none', '{}', '{}', 'attempts_exhausted', 'no', 1, 'h', "
                   "'1', 'charges', 'k', now())");
    });
    EXPECT_EQ(of_two, 1) << "else a message is called for that has a dead letter";
    EXPECT_EQ(key("status || coalesce(holder, 0)"), status + "0");
  }
}

TEST_F(OutsideCallsInSql, DoNotRenewALeaseThatIsOver) {
  EXPECT_TRUE(renew_holder(session, me, 1h));
  EXPECT_FALSE(renew_holder(session, dead_holder(), 1h)) << "others may have taken its keys";
}

TEST_F(OutsideCallsInSql, DoNotCountATakeThatIsGivenBackUncalled) {
  taken(request("k"), me);
  for (int i = 0; i < 2; ++i) release(request("k"), me);
  EXPECT_EQ(key("calls || ' ' || coalesce(holder::text, 'free')"), "0 free");
  EXPECT_EQ(taken(request("k"), me).calls, 1) << "the next one is the first that may call";
}

TEST_F(OutsideCallsInSql, CountATakeThatMayHaveCalled) {
  taken(request("k"), me);
  release(request("k"), me, false);
  EXPECT_EQ(taken(request("k"), me).calls, 2);
}

TEST_F(OutsideCallsInSql, LeaveTheKeyOfAnotherHolderAlone) {
  taken(request("k"), me);
  release(request("k"), me);
  const HolderId other = register_holder(session, "g", "other", 1h);
  taken(request("k"), other);
  release(request("k"), me);
  EXPECT_TRUE(take(request("k"), me).is_held);
  EXPECT_EQ(key("calls"), "1");
}

// A connection broke while its give-back waited for a row. Another connection gave the key back,
// and the holder took it again. Then the first one goes on.
TEST_F(OutsideCallsInSql, DoNotGiveBackALaterTakeOfTheSameHolder) {
  taken(request("k"), me);
  pqxx::connection connection(database.owner().url);
  pqxx::work blocker(connection);
  blocker.exec("UPDATE hapax.idempotency_keys SET token = token + 1 WHERE key = 'k'");
  auto late = std::async(std::launch::async, [&] {
    Session of_its_own(database.worker());
    const HeldKey held{{"k", "", {}}, scope, me, true};
    release_calls(of_its_own, std::span(&held, 1));
  });
  database.wait_until("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", "1");
  blocker.commit();
  late.get();
  EXPECT_EQ(key("calls || ' ' || (holder IS NOT NULL)"), "1 true") << "it may be calling now";
}

TEST_F(OutsideCallsInSql, ThatComeTwiceGiveBackOnce) {
  taken(request("k"), me);
  release(request("k"), me, false);
  const std::int64_t token = taken(request("k"), me).token;
  for (int i = 0; i < 2; ++i) give_call_back(session, request("k").claim, token, true);
  EXPECT_EQ(key("calls"), "1") << "the first call may have happened";
}

TEST_F(OutsideCallsInSql, KeepAnAnswerThatComesTwice) {
  const std::int64_t token = taken(request("k"), me).token;
  EXPECT_TRUE(keep(request("k"), token, R"({"n":1})"));
  EXPECT_TRUE(keep(request("k"), token, R"({"n":1})")) << "the answer to COMMIT was lost";
  EXPECT_EQ(key("status || answer::text"), R"(answered{"n":1})");
}

TEST_F(OutsideCallsInSql, KeepNoAnswerOfAHolderThatWasSuperseded) {
  const std::int64_t old = taken(request("k"), dead_holder()).token;
  EXPECT_EQ(old, 0);
  const std::int64_t first = taken(request("k"), me).token;
  release(request("k"), me, false);
  const std::int64_t second = taken(request("k"), me).token;
  EXPECT_FALSE(keep(request("k"), first, R"({"n":1})"));
  EXPECT_TRUE(keep(request("k"), second, R"({"n":2})"));
  EXPECT_EQ(key("answer::text"), R"({"n":2})");
}

// What an operator saw before the answer came is not the operation any more.
TEST_F(OutsideCallsInSql, KeepTheFirstLateAnswerForTheOperatorUnderALargerToken) {
  const std::int64_t first = taken(request("k"), me).token;
  release(request("k"), me, false);
  const std::int64_t second = taken(request("k"), me).token;
  EXPECT_TRUE(end_replayed_call(session, request("k").claim, second, CallEnd::unknown, "why"));
  EXPECT_EQ(key("token"), std::to_string(second));
  EXPECT_FALSE(keep(request("k"), first, R"({"n":1})"));
  EXPECT_FALSE(keep(request("k"), first, R"({"n":1})")) << "the answer to COMMIT was lost";
  EXPECT_FALSE(keep(request("k"), second, R"({"n":2})"));
  EXPECT_EQ(key("status || answer::text || (token - " + std::to_string(second) + ")"),
            R"(unknown{"n":1}1)");
}

TEST_F(OutsideCallsInSql, TellThatAnAnswerIsTooMuch) {
  const std::int64_t token = taken(request("k"), me).token;
  try {
    keep(request("k"), token, std::string(1'000'000, '['));
    FAIL() << "PostgreSQL has kept it";
  } catch (const DatabaseError& error) {
    EXPECT_TRUE(is_too_much(error.fault())) << error.what();
  }
  EXPECT_EQ(key("status"), "started");
}

TEST_F(OutsideCallsInSql, DoNotEndWhatAnotherHolderHas) {
  const std::int64_t first = taken(request("k"), me).token;
  release(request("k"), me, false);
  taken(request("k"), me);
  EXPECT_FALSE(end_replayed_call(session, request("k").claim, first, CallEnd::unknown, "why"));
  EXPECT_EQ(key("status"), "started");
}

TEST_F(OutsideCallsInSql, DoNotBookUnderTheTokenOfAnEarlierTake) {
  const std::int64_t first = taken(request("k"), me).token;
  release(request("k"), me, false);
  const std::int64_t second = taken(request("k"), me).token;
  EXPECT_TRUE(keep(request("k"), second, "{}"));
  const auto is_lost = [&](std::int64_t token) {
    Transaction transaction(session);
    return claim_answered(transaction, request("k").claim, token).lost;
  };
  EXPECT_TRUE(is_lost(first));
  EXPECT_FALSE(is_lost(second));
}

// A call depends on each of them. If PostgreSQL loses one in a crash, the call may happen twice.
TEST_F(OutsideCallsInSql, CommitTakesAnswersAndEndsSynchronouslyThoughTheDatabaseDoesNot) {
  database.run(
      "CREATE TABLE commits (status text, setting text); GRANT INSERT ON commits TO hapax_worker;"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
      "public.commits "
      "VALUES (NEW.status, current_setting('synchronous_commit')); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER last AFTER INSERT OR UPDATE ON hapax.idempotency_keys "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();"
      "ALTER DATABASE " +
      database.name() + " SET synchronous_commit = off");
  session = Session(database.worker());
  keep(request("k"), taken(request("k"), me).token, "{}");
  const std::int64_t unanswered = taken(request("j", 8), me).token;
  EXPECT_TRUE(end_replayed_call(session, request("j", 8).claim, unanswered, CallEnd::unknown, "?"));
  EXPECT_EQ(database.value("SELECT status, setting FROM commits GROUP BY 1, 2 ORDER BY 1"),
            "answered|on\nstarted|on\nunknown|on");
}

// A lane books the key, for example, and takes its time.
TEST_F(OutsideCallsInSql, WaitForNoKeyThatATransactionHas) {
  taken(request("k"), me);
  release(request("k"), me);
  Session booking(database.worker());
  Transaction transaction(booking);
  transaction.run(std::string("SELECT FROM hapax.idempotency_keys WHERE key = 'k' FOR UPDATE"));
  const CallRequest wanted[] = {request("j", 1), request("k"), request("l", 2)};
  const std::vector<Take> takes = take_calls(session, me, wanted);
  EXPECT_TRUE(takes[0].taken && !takes[0].is_held);
  EXPECT_TRUE(!takes[1].taken && takes[1].is_held);
  EXPECT_TRUE(takes[2].taken && !takes[2].is_held);
  EXPECT_EQ(takes[0].taken->calls, 1) << "the take of all at once did not commit";
}

TEST_F(OutsideCallsInSql, KeepAnswersBesideOneWhoseKeyATransactionHas) {
  std::vector<KeptAnswer> answers;
  const std::string answer = R"({"n":1})";
  for (const char* const name : {"j", "k", "l"}) {
    const CallRequest wanted = request(name);
    answers.push_back({wanted.claim.identity, scope, taken(wanted, me).token, answer});
  }
  ++answers[2].token;
  Session booking(database.worker());
  Transaction transaction(booking);
  transaction.run(std::string("SELECT FROM hapax.idempotency_keys WHERE key = 'k' FOR UPDATE"));
  EXPECT_EQ(keep_answers(session, answers),
            (std::vector{Kept::yes, Kept::locked, Kept::superseded}));
  transaction.rollback();
  EXPECT_EQ(keep_answers(session, answers), (std::vector{Kept::yes, Kept::yes, Kept::superseded}));
}

// The thread that asks renews the holder's lease, too. With 50 ms for each it would take 20 s.
TEST_F(OutsideCallsInSql, WaitShortlyForEachOfManyWhileTheWholeTableIsLocked) {
  const std::string answer = "{}";
  const CallRequest wanted = request("k");
  const std::vector<KeptAnswer> answers(400, {wanted.claim.identity, scope, 1, answer});
  keep_answers(session, std::span(answers).first(1));  // prepares it, which would wait as well
  Session indexing(database.owner());
  Transaction transaction(indexing);
  transaction.run(std::string("LOCK TABLE hapax.idempotency_keys IN SHARE MODE"));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(keep_answers(session, answers), std::vector(400, Kept::locked));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

}  // namespace
}  // namespace hapax::store
