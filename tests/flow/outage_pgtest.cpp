// PostgreSQL goes away in each phase of a message, and the answer to COMMIT is lost.
#include "flow/flow_case.hpp"
#include "store/worker/checkpoints.hpp"

#include <pqxx/pqxx>

#include "support/cutting_proxy.hpp"

namespace hapax::flow {
namespace {

using test::CuttingProxy;

class Outage : public FlowCase {
 protected:
  // The backends of the worker are gone when this returns.
  void end_backends() {
    const std::string workers =
        " FROM pg_stat_activity WHERE usename = 'hapax_worker' AND datname = current_database()";
    database.run("SELECT pg_terminate_backend(pid)" + workers);
    database.wait_until("SELECT count(*)" + workers, "0");
  }

  // Writes, and returns when PostgreSQL has ended the session.
  void outlive_the_session(const Message& message, Context& context) {
    book(message, context);
    database.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'hapax_worker' AND "
        "datname = current_database()",
        "0");
  }

  // As a partition's start finds it.
  std::string incarnation() {
    database.run("INSERT INTO hapax.incarnation DEFAULT VALUES ON CONFLICT DO NOTHING");
    store::Session session(database.worker());
    return store::read_store(session).incarnation;
  }
};

TEST_F(Outage, BeforeTheClaimIsNoAttempt) {
  process({.key = "first"});
  end_backends();
  const Outcome outcome = process({.offset = 1});
  EXPECT_EQ(outcome.result, Result::outage) << outcome.detail;
  EXPECT_FALSE(outcome.lost_in_handler);
  EXPECT_EQ(process({.offset = 1}).result, Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(Outage, AServerThatIsDownIsAnOutageAndTheMessageCompletesOnceItIsBack) {
  process({.key = "first"});
  test::postgres().kill();
  EXPECT_EQ(process({.offset = 1}).result, Result::outage);
  EXPECT_EQ(process({.offset = 1}).result, Result::outage);
  test::postgres().start();
  EXPECT_EQ(process({.offset = 1}).result, Result::completed);
  EXPECT_EQ(process({.offset = 1}).result, Result::duplicate);
  EXPECT_EQ(effects(), "first=10 k1=10");
}

// What it follows may be lost and come again: run now, it would take effect ahead of that.
TEST_F(Outage, AMessageOfAPartitionThatStartedBeforeACrashWaitsUntilItIsStartedAgain) {
  const std::string before = incarnation();
  EXPECT_EQ(process({.key = "first"}, book, {.incarnation = before}).result, Result::completed);
  test::postgres().kill();
  test::postgres().start();
  const Sent second{.key = "second", .offset = 1};
  EXPECT_EQ(process(second, book, {.incarnation = before}).result, Result::outage);
  EXPECT_EQ(process(second, book, {.incarnation = before}).result, Result::busy);
  EXPECT_EQ(effects(), "first=10");
  EXPECT_EQ(process(second, book, {.incarnation = incarnation()}).result, Result::completed);
  EXPECT_EQ(effects(), "first=10 second=10");
}

// The lane was idle, and its session is dead without having been told.
TEST_F(Outage, AMessageOfAPartitionThatStartedAfterACrashRunsThoughTheSessionIsFromBeforeIt) {
  EXPECT_EQ(process({.key = "first"}, book, {.incarnation = incarnation()}).result,
            Result::completed);
  test::postgres().kill();
  test::postgres().start();
  const Given after{.incarnation = incarnation()};
  EXPECT_EQ(process({.key = "second", .offset = 1}, book, after).result, Result::outage);
  EXPECT_EQ(process({.key = "second", .offset = 1}, book, after).result, Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(Outage, AServerKilledInTheHandlerIsAnOutageAndTheEffectComesOnce) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    test::postgres().kill();
    context.sql("SELECT 1");
  });
  test::postgres().start();
  EXPECT_EQ(outcome.result, Result::outage) << outcome.detail;
  EXPECT_TRUE(outcome.lost_in_handler);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(process({}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(Outage, AServerKilledBetweenHandlerAndCommitIsDoubtThatTheKeySettles) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    test::postgres().kill();
  });
  test::postgres().start();
  EXPECT_FALSE(is_settled(outcome.result));
  EXPECT_EQ(settle({}, book).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
}

// A second connection works, so it may be the handler's doing. With an SQLSTATE (libpqxx 7) the
// first losses are taken for an administrator's; libpqxx 6 shows none, and each is counted.
TEST_F(Outage, ABackendEndedInTheHandlerIsCountedAtTheThirdTimeAtTheLatest) {
  const Body body = [&](const Message& message, Context& context) {
    book(message, context);
    end_backends();
    context.sql("SELECT 1");
  };
  Given given;
  for (; given.outages < 2; ++given.outages) {
    const Outcome outcome = process({}, body, given);
    EXPECT_TRUE(outcome.result == Result::retry || outcome.lost_in_handler) << outcome.detail;
  }
  route.retry.max_attempts = 4;
  EXPECT_EQ(process({}, body, given).result, Result::retry);
  EXPECT_EQ(count("hapax.attempts"), 1);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(process({}).result, Result::completed);
}

TEST_F(Outage, AHandlerThatCrashesItsBackendEachTimeBecomesADeadLetter) {
  const Outcome outcome = settle({}, [&](const Message& message, Context& context) {
    book(message, context);
    context.sql("SELECT pg_terminate_backend(pg_backend_pid())");
    context.sql("SELECT 1");
  });
  EXPECT_EQ(outcome.result, Result::failed) << outcome.reason;
  EXPECT_EQ(outcome.reason, "attempts_exhausted");
  EXPECT_LE(runs, 2 + route.retry.max_attempts);
  EXPECT_EQ(effects(), "");
}

TEST_F(Outage, AFullDiskIsNeverAnAttempt) {
  const auto raise = [&](const char* state, int outages) {
    return process({},
                   [&](const Message&, Context& context) {
                     context.sql(std::string("DO $$ BEGIN RAISE 'no' USING ERRCODE = '") + state +
                                 "'; END $$");
                   },
                   {.outages = outages})
        .result;
  };
  for (const char* state : {"53100", "58030"}) EXPECT_EQ(raise(state, 2), Result::outage) << state;
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(raise("53200", 0), Result::outage);
  EXPECT_EQ(raise("53200", 2), Result::retry) << "its own memory, perhaps";
  EXPECT_EQ(raise("XX001", 0), Result::outage);
  EXPECT_EQ(raise("XX001", 2), Result::retry) << "a page that only this message needs";
}

// No handler runs any more, and nothing is pending: what refuses is a trigger that waits for
// COMMIT.
TEST_F(Outage, ADamagedPageMetAtCommitIsCountedAtTheThirdTime) {
  database.run(
      "CREATE FUNCTION public.meet_page() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE 'page' USING ERRCODE = 'XX001'; END $$;"
      "CREATE CONSTRAINT TRIGGER meets AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION public.meet_page()");
  const Body body = [](const Message&, Context& context) {
    context.sql("INSERT INTO effects (key) VALUES ('k')");
  };
  Given given;
  for (; given.outages < 2; ++given.outages) {
    const Outcome outcome = process({}, body, given);
    EXPECT_EQ(outcome.result, Result::outage) << outcome.detail;
    EXPECT_TRUE(outcome.lost_in_handler);
  }
  EXPECT_EQ(process({}, body, given).result, Result::retry);
}

// Its SQL takes the whole server down, so no run can be counted meanwhile.
TEST_F(Outage, AMessageUnderWhichPostgresWasLostThreeTimesIsCountedBeforeItRunsAgain) {
  const Outcome outcome = process({}, book, {.outages = 3});
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(database.value("SELECT last_error FROM hapax.attempts"),
            "PostgreSQL was lost 3 times while this message ran");
}

TEST_F(Outage, AHandlerThatSleepsPastTheIdleTimeoutIsAnAttempt) {
  options.idle_in_transaction_timeout = std::chrono::milliseconds(100);
  const Outcome outcome = process({}, [&](const Message& message, Context& context) {
    outlive_the_session(message, context);
    context.sql("SELECT 1");
  });
  EXPECT_EQ(outcome.result, Result::retry) << outcome.sqlstate << outcome.detail;
  EXPECT_EQ(count("hapax.attempts"), 1);
  EXPECT_EQ(effects(), "");
}

// hapax sets none, but PostgreSQL 17 and later may have one for the role or the server.
TEST_F(Outage, AHandlerThatTakesLongerThanTheTransactionTimeoutIsAnAttempt) {
  if (database.count("SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'") == 0)
    GTEST_SKIP() << "PostgreSQL has no transaction_timeout before 17";
  database.run("ALTER ROLE hapax_worker IN DATABASE \"" + database.name() +
               "\" SET transaction_timeout TO '1s'");
  const Body sleeps = [&](const Message& message, Context& context) {
    outlive_the_session(message, context);
    context.sql("SELECT 1");
  };
  const Body computes = [](const Message& message, Context& context) {
    book(message, context);
    context.sql("SELECT pg_sleep(60)");
  };
  for (const Body& body : {sleeps, computes}) {
    const Outcome outcome = process({}, body);
    EXPECT_EQ(outcome.result, Result::retry) << outcome.sqlstate << outcome.detail;
  }
  EXPECT_EQ(database.value("SELECT count FROM hapax.attempts"), "2");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(process({}).result, Result::completed);
}

TEST_F(Outage, AHandlerThatSleepsPastTheIdleTimeoutAndReturnsIsNotCompleted) {
  options.idle_in_transaction_timeout = std::chrono::milliseconds(100);
  const auto sleep = [&](const Message& message, Context& context) {
    outlive_the_session(message, context);
  };
  const Outcome outcome = process({}, sleep);
  EXPECT_FALSE(is_settled(outcome.result));
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(settle({}, sleep).reason, "attempts_exhausted");
  EXPECT_LE(runs, 6);
}

// A zombie's transaction is ended while a new owner waits for its key: one effect.
TEST_F(Outage, AFrozenHoldersKeyIsFreeOnceItsBackendIsGone) {
  Processor other = make_processor(2);
  const Outcome outcome = process({}, [&](const Message& message, Context& context) {
    book(message, context);
    end_backends();
    EXPECT_EQ(process_on(other, {}, book).result, Result::completed);
  });
  EXPECT_FALSE(is_settled(outcome.result));
  EXPECT_EQ(process({}).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

// Like a handler that waits for a bank beyond idle_in_transaction_timeout, and then throws what the
// bank answered.
TEST_F(Outage, OfTheHandlersOwnMakingIsCountedThoughItThrowsSomethingElse) {
  const auto loses_and = [](auto thrown) {
    return [=](const Message&, Context& context) {
      try {
        context.sql("SELECT pg_terminate_backend(pg_backend_pid())");
      } catch (const SqlError&) {
      }
      throw thrown;
    };
  };
  const Body bodies[] = {loses_and(std::runtime_error("the bank timed out")),
                         loses_and(Reject("the bank says no")),
                         loses_and(Retry("the bank is busy"))};
  Processor lane([this] { return store::Session(options); }, 1);
  for (const Body& body : bodies)
    EXPECT_EQ(process_on(lane, {}, body, {.outages = 2}).reason,
              &body == &bodies[2] ? "attempts_exhausted" : "failed");
  EXPECT_EQ(database.value("SELECT count FROM hapax.attempts"), "3");
}

// What a statement's plan gives, and of which types its parameters are, is fixed for as long as its
// session lives. On every lane's, so no attempts are counted.
TEST_F(Outage, OfAStaleStatementRunsAgainOnAnotherSession) {
  database.run(
      "CREATE TABLE accounts (id text); INSERT INTO accounts VALUES ('1');"
      "GRANT SELECT, INSERT ON accounts TO PUBLIC");
  const Body writes = [](const Message& message, Context& context) {
    context.sql("SELECT * FROM accounts");
    context.sql("INSERT INTO accounts (id) VALUES ($1)", "7");
    book(message, context);
  };
  const auto booked = [&](Processor& lane, int n) {
    return process_on(lane, {.key = std::to_string(n), .offset = n}, writes).result;
  };
  Processor lane = make_processor(), other = make_processor();
  EXPECT_EQ(booked(lane, 1), Result::completed);
  EXPECT_EQ(booked(other, 2), Result::completed);
  database.run("ALTER TABLE accounts ADD COLUMN name text");
  EXPECT_EQ(booked(lane, 3), Result::completed);
  database.run("ALTER TABLE accounts ALTER COLUMN id TYPE int USING id::int");
  EXPECT_EQ(booked(other, 4), Result::completed);
  EXPECT_EQ(booked(lane, 5), Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(Outage, OfNoStaleStatementIsCountedOnceANewSessionFailsAlike) {
  EXPECT_EQ(process({.key = "first"}).result, Result::completed);
  runs = 0;
  const Outcome outcome = process({.offset = 1}, [](const Message&, Context& context) {
    context.sql("SELECT $1::int", "no number");
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.sqlstate, "22P02");
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(runs, 2);
}

class InDoubt : public FlowCase {
 protected:
  InDoubt() : proxy(test::postgres().port()) {
    options = test::through_port(options, proxy.port());
  }
  CuttingProxy proxy;
};

TEST_F(InDoubt, ACommitWhoseAnswerIsLostIsADuplicateTheNextTime) {
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_answer);
  const Outcome outcome = process({});
  EXPECT_EQ(proxy.cuts(), 1);
  EXPECT_EQ(outcome.result, Result::again) << outcome.detail;
  EXPECT_EQ(process({}).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(InDoubt, ACommitThatNeverArrivedRunsAgain) {
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::before_forwarding);
  EXPECT_EQ(process({}).result, Result::again);
  EXPECT_EQ(proxy.cuts(), 1);
  EXPECT_EQ(settle({}, book).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(InDoubt, ACommitThatIsStillRunningIsWaitedForByTheClaim) {
  for (int i = 0; i < 20; ++i) {
    proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_forwarding);
    const Sent sent{.key = std::to_string(i), .offset = i};
    EXPECT_EQ(process(sent).result, Result::again);
    const Outcome outcome = settle(sent, book);
    EXPECT_TRUE(outcome.result == Result::duplicate || outcome.result == Result::completed);
  }
  EXPECT_EQ(database.value("SELECT count(*), count(DISTINCT key) FROM effects"), "20|20");
}

TEST_F(InDoubt, DeferredWritesInDoubtAreNoAttempt) {
  const Body body = [](const Message&, Context& context) {
    context.write("INSERT INTO effects (key, note) VALUES ('k1', '10')");
  };
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_answer);
  EXPECT_EQ(process({}, body).result, Result::again);
  EXPECT_EQ(process({}, body).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

// Nor is its withdrawal, of which the later COMMITs are.
TEST_F(InDoubt, AnAnnouncementIsNoCrash) {
  Processor lane([this] { return store::Session(options); }, 1);
  Given given{.cautious = true};
  for (int run = 0; run < 2 * route.retry.max_crashes; ++run) {
    proxy.cut_next(std::string("COMMIT", 7), CuttingProxy::Cut::after_answer);  // with its NUL
    const Outcome outcome = process_on(lane, {}, book, given);
    EXPECT_FALSE(is_settled(outcome.result)) << outcome.reason;
    EXPECT_EQ(proxy.cuts(), run + 1);
    EXPECT_LE(database.count("SELECT coalesce(sum(crashes), 0) FROM hapax.attempts"), 1);
    given.announced = outcome.announced;
  }
  EXPECT_EQ(process_on(lane, {}, book, given).result, Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

// The dead letter is committed, its answer lost: a redelivery finds it.
TEST_F(InDoubt, AGivingUpInDoubtIsFoundByTheNextRun) {
  const Body reject = [](const Message&, Context&) { throw Reject("no"); };
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_answer);
  const Outcome outcome = process({}, reject);
  EXPECT_FALSE(is_settled(outcome.result));
  EXPECT_FALSE(is_halt(outcome.result)) << outcome.detail;
  EXPECT_EQ(process({}, reject).reason, "redelivered");
  EXPECT_EQ(count("hapax.dead_letters"), 1);
}

}  // namespace
}  // namespace hapax::flow
