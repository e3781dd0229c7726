// Runs of replays that race, fail, crash or lose PostgreSQL: the effect is there once, or not at
// all.

#include "flow/replay_case.hpp"

#include <pqxx/pqxx>
#include <thread>

#include "support/cutting_proxy.hpp"

namespace hapax::flow {
namespace {

class ReplayRun : public ReplayCase {
 protected:
  // Runs the replay again and again, as soon as it may; its handler ends with each of these
  // SQLSTATEs in turn. How many of the runs count so far, after each.
  std::string runs_after(const std::vector<const char*>& states) {
    const char* state = nullptr;
    BodyHandler handler([&](const Message&, Context& context) {
      context.sql(std::string("DO $$ BEGIN RAISE 'no' USING ERRCODE = '") + state + "'; END $$");
    });
    Replayer replayer = make_replayer(handler);
    std::string counted;
    for (const char* const next : states) {
      state = next;
      database.run("UPDATE hapax.replays SET next_try = now()");
      EXPECT_EQ(replayer.run_next().result, ReplayResult::later) << state;
      counted += (counted.empty() ? "" : " ") + database.value("SELECT runs FROM hapax.replays");
    }
    return counted;
  }
};

// Who races whom.

TEST_F(ReplayRun, RunsOnceInEachRaceOfTwoReplayers) {
  lease = std::chrono::seconds(0);  // every claim is there for the taking at once
  constexpr int kLetters = 20;
  for (int i = 0; i < kLetters; ++i) want(dead({.key = "k" + std::to_string(i), .offset = i}));
  const auto count_open = [connect = options] {
    store::Session session(connect);
    store::Transaction transaction(session);
    return transaction.run("SELECT count(*) FROM hapax.replays WHERE ended_at IS NULL")[0][0]
        .as<int>();
  };
  const auto work = [&] {
    BodyHandler handler(book);
    Replayer replayer = make_replayer(handler);
    // Nothing for this one may be another's locked one.
    while (count_open() > 0) replayer.run_next();
  };
  std::vector<std::jthread> replayers;
  for (int i = 0; i < 3; ++i) replayers.emplace_back(work);
  replayers.clear();
  EXPECT_EQ(database.value("SELECT count(*), count(DISTINCT key) FROM effects"), "20|20");
  EXPECT_EQ(database.value("SELECT outcome, count(*) FROM hapax.replays GROUP BY 1"),
            "completed|20");
}

TEST_F(ReplayRun, RunIsNotTakenAwayThoughItsLeaseRanOut) {
  lease = std::chrono::seconds(0);
  want(dead());
  EXPECT_EQ(run_next([&](const Message& message, Context& context) {
              EXPECT_EQ(run_next().result, ReplayResult::nothing) << "its row is locked";
              book(message, context);
            }).result,
            ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(ReplayRun, ClaimThatIsNotTheLastOneDoesNothing) {
  const auto letter = dead();
  want(letter);
  store::Session session(options);
  const auto first =
      store::claim_replay(session, "group", {"payments"}, "w", std::chrono::seconds(0));
  const auto second =
      store::claim_replay(session, "group", {"payments"}, "w", std::chrono::hours(1));
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(second->abandoned);
  store::write_note(session, *first, {store::ReplayNote::What::failed, "late"}, "w", "group");
  EXPECT_EQ(replay_row(), "open|null");
  store::Transaction transaction(session);
  EXPECT_FALSE(store::lock_replay(transaction, *first));
  EXPECT_TRUE(store::lock_replay(transaction, *second));
}

TEST_F(ReplayRun, LosesAgainstTheProducersNextTryOrWinsButNeverBoth) {
  want(dead());
  const Replayed replayed = run_next([&](const Message& message, Context& context) {
    book(message, context);
    Processor other = make_processor(2);
    EXPECT_FALSE(is_settled(process_on(other, {.offset = 9}, book).result)) << "the key is held";
  });
  EXPECT_EQ(replayed.result, ReplayResult::completed);
  EXPECT_EQ(process({.offset = 9}).result, flow::Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

// Failing.

TEST_F(ReplayRun, FailsForGoodIfTheHandlerRejectsItAndCanBeWantedAgain) {
  const auto letter = dead();
  want(letter);
  EXPECT_EQ(run_next(reject_it).result, ReplayResult::failed);
  EXPECT_EQ(replay_row(), "failed|rejected: no");
  EXPECT_EQ(state_of(letter), "open");
  EXPECT_EQ(key_row(), "failed@0");
  want(letter);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(ReplayRun, IsTriedAgainLaterUntilItsAttemptsAreExhausted) {
  want(dead());
  const Body fail = [](const Message& message, Context& context) {
    book(message, context);
    throw std::runtime_error("boom");
  };
  for (int i = 1; i <= 3; ++i) {
    runs = 0;
    const Replayed replayed = run_next(fail);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(replayed.result, i < 3 ? ReplayResult::later : ReplayResult::failed);
    EXPECT_EQ(database.value("SELECT runs, last_error, next_try > wanted_at FROM hapax.replays"),
              std::to_string(i) + (i < 3 ? "|boom|t" : "|attempts_exhausted: boom|t"));
    database.run("UPDATE hapax.replays SET next_try = now()");
  }
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

// After a failover its idle session may lead to an old primary that lives on.
TEST_F(ReplayRun, DoesNotKeepItsSessionForEver) {
  int connected = 0;
  BodyHandler handler(book);
  const auto turn_twice = [&](std::chrono::milliseconds session_lasts) {
    connected = 0;
    const auto connect = [&] {
      ++connected;
      return store::Session(options);
    };
    Replayer replayer({connect, "group", "w", {{&route, &handler}}, 1, {}, lease, session_lasts});
    for (int turn = 0; turn < 2; ++turn)
      EXPECT_EQ(replayer.run_next().result, ReplayResult::nothing);
    return connected;
  };
  EXPECT_EQ(turn_twice(std::chrono::hours(1)), 1);
  EXPECT_EQ(turn_twice({}), 2);
}

// A statement of a session that a handler has used before may be stale: a new one tells.
TEST_F(ReplayRun, WhoseStatementMayBeStaleIsRunAgainBeforeItIsCounted) {
  BodyHandler handler([&](const Message&, Context& context) {
    if (++runs > 1) context.sql("SELECT no_such_function($1)", 1);
  });
  Replayer replayer = make_replayer(handler);
  want(dead());
  EXPECT_EQ(replayer.run_next().result, ReplayResult::completed);
  want(dead({.key = "k2", .offset = 1}));
  runs = 1;
  EXPECT_EQ(replayer.run_next().result, ReplayResult::later);
  EXPECT_EQ(database.value("SELECT runs FROM hapax.replays WHERE ended_at IS NULL"), "0");
  EXPECT_EQ(replayer.count_open(), 1U);
  for (int i = 1; i < 2 * route.retry.max_attempts; ++i) {
    replayer.run_next();
    database.run("UPDATE hapax.replays SET next_try = now()");
  }
  EXPECT_EQ(replayer.count_open(), 0U) << "it is put back for ever";
}

// As in Processor: an answer that usually passes must come to an end if it does not.
TEST_F(ReplayRun, ThatFailsForEverAsIfItWereNobodysFaultIsCountedInTheEnd) {
  database.run(
      "CREATE FUNCTION raise(state text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'always' USING ERRCODE = state; END $$");
  const int bound = route.retry.max_attempts * (kMaxAgains + 1);
  std::int64_t offset = 0;
  for (const std::string state : {"40001", "40P01", "26000"}) {
    const auto letter = dead({.key = state, .offset = offset++});
    want(letter);
    BodyHandler handler([&](const Message&, Context& context) {
      ++runs;
      context.sql("SELECT raise($1)", state);
    });
    Replayer replayer = make_replayer(handler);
    while (replayer.count_open() != 0U && runs <= bound) {
      replayer.run_next();
      database.run("UPDATE hapax.replays SET next_try = now() WHERE ended_at IS NULL");
    }
    EXPECT_EQ(runs, bound) << state;
    EXPECT_EQ(replay_row().substr(0, 25), "failed|attempts_exhausted") << state;
    EXPECT_EQ(state_of(letter), "open");
  }
}

TEST_F(ReplayRun, WaitsForItsTime) {
  want(dead());
  run_next([](const Message&, Context&) { throw Retry("later", std::chrono::hours(1)); });
  EXPECT_EQ(run_next().result, ReplayResult::nothing);
  database.run("UPDATE hapax.replays SET next_try = now()");
  EXPECT_EQ(run_next().result, ReplayResult::completed);
}

TEST_F(ReplayRun, CountsNothingIfPostgresqlGoesAwayInTheHandler) {
  want(dead());
  BodyHandler handler([&](const Message& message, Context& context) {
    book(message, context);
    if (++runs > 1) return;
    test::postgres().kill();
    context.sql("SELECT 1");
  });
  Replayer replayer = make_replayer(handler);
  EXPECT_EQ(replayer.run_next().result, ReplayResult::outage);
  test::postgres().start();
  // The replayer first writes to PostgreSQL that the run does not count. Then it claims the next.
  EXPECT_EQ(replayer.run_next().result, ReplayResult::nothing);
  EXPECT_EQ(database.value("SELECT runs, claimed_until FROM hapax.replays"), "0|null");
  database.run("UPDATE hapax.replays SET next_try = now()");
  EXPECT_EQ(replayer.run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(ReplayRun, ConnectionThatItsHandlerLosesIsAFailedRun) {
  want(dead());
  const Replayed replayed = run_next([&](const Message& message, Context& context) {
    book(message, context);
    context.sql("SELECT pg_terminate_backend(pg_backend_pid())");
  });
  EXPECT_EQ(replayed.result, ReplayResult::later) << replayed.detail;
  EXPECT_EQ(database.value("SELECT runs, last_error IS NULL FROM hapax.replays"), "1|f");
}

// As under a message: XX001 is a page of PostgreSQL's that only this message needs, perhaps.
TEST_F(ReplayRun, CountsTheThirdLossOfPostgresqlUnderItAndEachFurtherOne) {
  want(dead());
  route.retry.max_attempts = 9;
  EXPECT_EQ(runs_after({"XX001", "XX001", "XX001", "XX001"}), "0 0 1 2");
}

TEST_F(ReplayRun, TakesAFullDiskForNoLossOfPostgresqlUnderIt) {
  want(dead());
  EXPECT_EQ(runs_after({"53100", "53100", "53100", "XX001", "XX001"}), "0 0 0 0 0");
}

TEST_F(ReplayRun, TakesARunThatCountsForNoLossOfPostgresqlUnderIt) {
  want(dead());
  route.retry.max_attempts = 9;
  EXPECT_EQ(runs_after({"25P03", "25P03", "XX001", "XX001", "XX001"}), "1 2 2 2 3");
}

TEST_F(ReplayRun, ThatIsRepeatedAtOnceCountsAfterTwentyInARow) {
  want(dead());
  std::vector<const char*> states(kMaxAgains, "40001");
  states.push_back("53100");  // what comes between starts the count again
  states.insert(states.end(), kMaxAgains + 1, "40001");
  std::string expected;
  for (std::size_t i = 1; i < states.size(); ++i) expected += "0 ";
  EXPECT_EQ(runs_after(states), expected + "1");
}

TEST_F(ReplayRun, OfAHandlerThatDropsOurPreparedStatementsCompletesAtTheSecondRun) {
  want(dead());
  BodyHandler handler([](const Message& message, Context& context) {
    book(message, context);
    context.pqxx().exec("DEALLOCATE ALL");
  });
  Replayer replayer = make_replayer(handler);
  EXPECT_EQ(replayer.run_next().result, ReplayResult::later);
  database.run("UPDATE hapax.replays SET next_try = now()");
  const Replayed second = replayer.run_next();
  EXPECT_EQ(second.result, ReplayResult::completed) << second.detail;
  EXPECT_EQ(database.value("SELECT runs FROM hapax.replays"), "1") << "the one that completed";
}

// No handler runs any more, and nothing is pending: what refuses is a trigger that waits for
// COMMIT.
TEST_F(ReplayRun, WhoseTransactionTookTooLongAtCommitIsAFailedRun) {
  want(dead());
  database.run(
      "CREATE FUNCTION public.take_long() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE 'long' USING ERRCODE = '25P04'; END $$;"
      "CREATE CONSTRAINT TRIGGER takes_long AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION public.take_long()");
  EXPECT_EQ(run_next().result, ReplayResult::later);
  EXPECT_EQ(database.value("SELECT runs FROM hapax.replays"), "1");
}

TEST_F(ReplayRun, TakesEffectOnceWithAnyFateOfTheAnswerToCommit) {
  using test::CuttingProxy;
  CuttingProxy proxy(test::postgres().port());
  const auto direct = options;
  int offset = 0;
  for (const auto when : {CuttingProxy::Cut::before_forwarding, CuttingProxy::Cut::after_forwarding,
                          CuttingProxy::Cut::after_answer}) {
    options = direct;
    const std::string key = "k" + std::to_string(offset);
    const auto letter = dead({.key = key, .offset = offset++});
    want(letter);
    options = test::through_port(direct, proxy.port());
    BodyHandler handler(book);
    Replayer replayer = make_replayer(handler);
    proxy.cut_next(";COMMIT", when);
    EXPECT_EQ(replayer.run_next().result, ReplayResult::later);
    EXPECT_EQ(proxy.cuts(), offset);
    database.run(
        "UPDATE hapax.replays SET next_try = now(), claimed_until = NULL "
        "WHERE ended_at IS NULL");
    replayer.run_next();
    EXPECT_EQ(state_of(letter), kReplayedByAnn);
    EXPECT_EQ(database.count("SELECT count(*) FROM effects WHERE key = '" + key + "'"), 1);
  }
}

TEST_F(ReplayRun, IsNotBegunAgainByARunThatKillsTheProcess) {
  want(dead());
  route.retry.max_crashes = 2;
  store::Session session(options);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(
        store::claim_replay(session, "group", {"payments"}, "died", std::chrono::seconds(0)));
  EXPECT_EQ(run_next().result, ReplayResult::failed);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(replay_row().substr(0, 15), "failed|crashed:");
}

TEST_F(ReplayRun, IsNotRunIfTheRouteIsHalted) {
  want(dead());
  store::Session session(options);
  store::open_halt(session, "group", {0, "payments", 0, true, 1, {}, "breaker", "", {}, "w"});
  EXPECT_EQ(run_next().result, ReplayResult::nothing);
  database.run("UPDATE hapax.halts SET ended_at = now()");
  EXPECT_EQ(run_next().result, ReplayResult::completed);
}

TEST_F(ReplayRun, IsNotForAnotherGroupOrTopic) {
  want(dead());
  route.topic = "other";
  EXPECT_EQ(run_next().result, ReplayResult::nothing);
  route.topic = "payments";
  database.run("UPDATE hapax.dead_letters SET group_id = 'other'");
  EXPECT_EQ(run_next().result, ReplayResult::nothing);
}

// The seal under attack: what a handler may try with the transaction of a replay.
class ReplaySeal : public ReplayRun, public testing::WithParamInterface<const char*> {};

TEST_P(ReplaySeal, HoldsAndHaltsTheRoute) {
  const auto letter = dead();
  want(letter);
  const Replayed replayed = run_next([](const Message& message, Context& context) {
    book(message, context);
    try {
      context.pqxx().exec(GetParam());
    } catch (const std::exception&) {
    }
  });
  EXPECT_EQ(replayed.result, ReplayResult::failed) << replayed.detail;
  EXPECT_TRUE(replayed.halted);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(key_row(), "failed@0");
  EXPECT_EQ(state_of(letter), "open");
  EXPECT_EQ(replay_row().substr(0, 32), "failed|handler_ended_transaction");
  EXPECT_EQ(database.value("SELECT topic, whole_route, reason, kafka_offset FROM hapax.halts"),
            "payments|t|handler_ended_transaction|null");
}

INSTANTIATE_TEST_SUITE_P(Attacks, ReplaySeal,
                         testing::Values("COMMIT", "ROLLBACK", "COMMIT AND CHAIN",
                                         "ROLLBACK AND CHAIN", "RESET ALL"));

TEST_F(ReplayRun, SwallowedSqlErrorIsAFailedRun) {
  want(dead());
  EXPECT_EQ(run_next([](const Message& message, Context& context) {
              book(message, context);
              try {
                context.pqxx().exec("SELECT 1/0");
              } catch (const std::exception&) {
              }
            }).result,
            ReplayResult::later);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(replay_row(), "open|null");
}

TEST_F(ReplayRun, DeferredWriteThatFailsIsTheHandlers) {
  const auto letter = dead();
  want(letter);
  EXPECT_EQ(run_next([](const Message& message, Context& context) {
              book(message, context);
              context.write("INSERT INTO effects (key, id) VALUES ('x', $1)", "no number");
            }).result,
            ReplayResult::later);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(state_of(letter), "open");
}

}  // namespace
}  // namespace hapax::flow
