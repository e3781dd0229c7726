// How a handler can end, and what is then committed.
#include "flow/flow_case.hpp"

#include <pqxx/pqxx>

#include "store/message/dead_letter.hpp"

namespace hapax::flow {
namespace {

using Ending = FlowCase;

TEST_F(Ending, CommitsEffectAndKeyInOneTransaction) {
  process({});
  EXPECT_EQ(database.value("SELECT e.xmin = k.xmin FROM effects e, hapax.idempotency_keys k"), "t");
}

TEST_F(Ending, LeavesNothingBehindIfTheHandlerThrows) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    throw std::runtime_error("no luck");
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(outcome.detail, "no luck");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(key_row(), "");
}

TEST_F(Ending, StoresTheLastResultWithTheKey) {
  process({}, [](const Message&, Context& context) {
    context.result({{"status", "first"}});
    context.result({{"status", std::string("a'b\\c\0d", 7)}});
  });
  EXPECT_EQ(database.value("SELECT result::text FROM hapax.idempotency_keys"),
            R"({"status":"a'b\\c\u0000d"})");
}

TEST_F(Ending, RejectsAResultThatIsTooLarge) {
  const Outcome outcome = process({}, [&](const Message& message, Context& context) {
    book(message, context);
    context.result(std::string(route.max_result_bytes, 'x'));  // and two quotes
  });
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "rejected");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(key_row(), "failed@0");
  EXPECT_EQ(process({.key = "k2", .offset = 1},
                    [&](const Message&, Context& context) {
                      context.result(std::string(route.max_result_bytes - 2, 'x'));
                    })
                .result,
            Result::completed);
}

TEST_F(Ending, RejectIsADeadLetterAtOnce) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    throw Reject("amount must be positive");
  });
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(key_row(), "failed@0");
  EXPECT_EQ(database.value("SELECT reason, error, sqlstate, attempts, handler, handler_version, "
                           "scope, key FROM hapax.dead_letters"),
            "rejected|amount must be positive|null|1|booker|v7|booking|k1");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(Ending, RetryWaitsAsLongAsItAsks) {
  const Outcome outcome = process(
      {}, [](const Message&, Context&) { throw Retry("rate limit", std::chrono::seconds(90)); });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.wait, std::chrono::seconds(90));
  EXPECT_EQ(database.value("SELECT count, last_error, handler, sqlstate, "
                           "round(extract(epoch FROM next_try - last_at)) FROM hapax.attempts"),
            "1|rate limit|booker|null|90");
}

TEST_F(Ending, RetryForEverIsStillOnlyARetry) {
  const Outcome outcome = process(
      {}, [](const Message&, Context&) { throw Retry("later", std::chrono::milliseconds::max()); });
  EXPECT_EQ(outcome.result, Result::retry) << outcome.detail;
}

TEST_F(Ending, AnExceptionThatIsNoStdExceptionIsAnAttempt) {
  EXPECT_EQ(process({}, [](const Message&, Context&) { throw 42; }).result, Result::retry);
  EXPECT_EQ(count("hapax.attempts"), 1);
}

TEST_F(Ending, AnSqlErrorLetPassIsAnAttemptThatNamesItsState) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    context.sql("SELECT 1 / $1::int", 0);
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.sqlstate, "22012");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(database.value("SELECT sqlstate FROM hapax.attempts"), "22012");
}

// libpqxx 7 reports the COMMIT of an aborted transaction as success.
TEST_F(Ending, ASwallowedSqlErrorIsAnAttemptAndNeverASuccess) {
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const Outcome outcome = process({}, [](const Message& message, Context& context) {
      book(message, context);
      try {
        context.sql("SELECT 1 / 0");
      } catch (const SqlError& error) {
        EXPECT_EQ(error.sqlstate(), "22012");
        EXPECT_EQ(error.statement().empty(), false);
      }
    });
    EXPECT_EQ(outcome.result, Result::retry);
    EXPECT_EQ(outcome.attempts, attempt);
  }
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(key_row(), "");
  EXPECT_EQ(process({}).result, Result::completed);
}

TEST_F(Ending, ASwallowedErrorOfATextThatDoesNotPrepareIsAnAttemptToo) {
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    try {
      context.write("INSERT INTO nowhere VALUES (1)");
    } catch (const SqlError& error) {
      EXPECT_EQ(error.sqlstate(), "42P01");
    }
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(key_row(), "");
}

TEST_F(Ending, AnErrorInASubtransactionCanBeSurvived) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    try {
      pqxx::subtransaction inner(context.pqxx());
      inner.exec("INSERT INTO effects (key, note) VALUES ('inner', 'lost')");
      inner.exec("SELECT 1 / 0");
    } catch (const pqxx::sql_error&) {
    }
    pqxx::subtransaction inner(context.pqxx());
    inner.exec("INSERT INTO effects (key, note) VALUES ('inner', 'kept')");
    inner.commit();
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(effects(), "k1=10 inner=kept");
}

// libpqxx 6 makes the savepoint at the first exec, and exec_params makes none.
TEST_F(Ending, ASubtransactionThatBeginsWithAnExecTakesBackItsParametersToo) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    pqxx::subtransaction inner(context.pqxx());
    inner.exec("SELECT 1");
    inner.exec_params("INSERT INTO effects (key, note) VALUES ($1, 'lost')", "inner");
    inner.abort();
    pqxx::subtransaction failing(context.pqxx());
    failing.exec("SELECT 1");
    EXPECT_THROW(failing.exec_params("SELECT 1 / $1::int", 0), pqxx::sql_error);
    failing.abort();
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(effects(), "k1=10");
}

// It would be sent with the completion, and stand though the subtransaction is rolled back.
TEST_F(Ending, NothingIsDeferredBesideASubtransaction) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    pqxx::subtransaction inner(context.pqxx());
    inner.exec("SELECT");
    try {
      context.write("INSERT INTO effects (key, note) VALUES ('written', 'lost')");
      context.insert("effects", {"key", "note"}, "inserted", "lost");
    } catch (const pqxx::usage_error&) {  // libpqxx 7
    }
    inner.abort();
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Ending, SavepointsOfAnyEndAreInnocent) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    context.pqxx().exec("SAVEPOINT kept");
    book(message, context);
    context.pqxx().exec(
        "RELEASE kept; SAVEPOINT dropped; INSERT INTO effects (key) VALUES ('x');"
        "ROLLBACK TO dropped; SAVEPOINT left_open");
    context.write("INSERT INTO effects (key, note) VALUES ('open', 'too')");
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(effects(), "k1=10 open=too");
  EXPECT_EQ(key_row(), "completed@0");
}

TEST_F(Ending, ADeferredConstraintViolatedAtCommitIsAnAttempt) {
  database.run(
      "ALTER TABLE effects ADD CONSTRAINT one UNIQUE (note) DEFERRABLE INITIALLY DEFERRED");
  process({});
  for (const bool deferred_write : {false, true}) {
    const Outcome outcome =
        process({.key = "k2", .offset = 1}, [&](const Message& message, Context& context) {
          if (!deferred_write) return book(message, context);
          context.write("INSERT INTO effects (key, note) VALUES ('k2', '10')");
        });
    EXPECT_EQ(outcome.result, Result::retry) << outcome.detail;
    EXPECT_EQ(outcome.sqlstate, "23505");
  }
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(key_row("k2"), "");
}

TEST_F(Ending, ADeferredTriggerThatRaisesIsAnAttempt) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN RAISE EXCEPTION ''not balanced''; END';"
      "CREATE CONSTRAINT TRIGGER balance AFTER INSERT ON effects DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()");
  const Outcome outcome = process({});
  EXPECT_EQ(outcome.result, Result::retry) << outcome.detail;
  EXPECT_EQ(outcome.sqlstate, "P0001");
  EXPECT_EQ(key_row(), "");
}

TEST_F(Ending, AStatementTimeoutInTheHandlerIsAnAttempt) {
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    context.sql("SET LOCAL statement_timeout TO 50");  // not the claim's, which may be slow
    context.sql("SELECT pg_sleep(60)");
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.sqlstate, "57014");
}

TEST_F(Ending, WhatAHandlerLeavesInItsSessionIsNotSeenByTheNextMessage) {
  database.run("CREATE TABLE caf (n int); GRANT ALL ON caf TO hapax_worker");
  const Outcome leaves = process({.key = "a"}, [](const Message&, Context& context) {
    context.sql("SET client_encoding TO 'LATIN1'");
    context.sql("SET search_path TO pg_temp");
    context.sql("SET default_transaction_read_only TO off");
    context.sql("SET lock_timeout TO 0");
  });
  EXPECT_EQ(leaves.result, Result::completed) << leaves.detail;
  // Keys are UTF-8: read as LATIN1 the same key would be another one, and run twice.
  EXPECT_EQ(process({.key = "caf\u00e9", .offset = 1}).result, Result::completed);
  EXPECT_EQ(database.count("SELECT octet_length(key) FROM hapax.idempotency_keys WHERE "
                           "kafka_offset = 1"),
            5);
  process({.key = "b", .offset = 2}, [](const Message&, Context& context) {
    const Rows rows = context.sql(
        "SELECT current_setting('search_path'), current_setting('lock_timeout'), "
        "current_setting('default_transaction_read_only')");
    EXPECT_NE(rows[0][0].text(), "pg_temp");
    EXPECT_EQ(rows[0][1].text(), "3s");
    EXPECT_EQ(rows[0][2].text(), "on");
  });
}

// The completion names the key; in bytes it would be another one now.
TEST_F(Ending, TheResultReachesItsKeyInEachEncoding) {
  const Outcome outcome = process({.key = "caf\u00e9"}, [](const Message&, Context& context) {
    context.sql("SET client_encoding TO 'LATIN1'");
    context.write("INSERT INTO effects (key, note) VALUES ('k', $1)", "\u20ac");
    context.result({{"booked", "\u20ac"}});
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(database.value("SELECT result->>'booked' FROM hapax.idempotency_keys"), "\u20ac");
  EXPECT_EQ(effects(), "k=\u20ac");
}

TEST_F(Ending, ATombstoneIsSkippedIfTheRouteWantsIt) {
  EXPECT_EQ(process({.payload = std::nullopt}).reason, "tombstone");
  route.key.tombstone = key::Tombstone::skip;
  EXPECT_EQ(process({.payload = std::nullopt, .offset = 1}).result, Result::skipped);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(count("hapax.dead_letters"), 1);
  EXPECT_EQ(count("hapax.idempotency_keys"), 0);
}

// The third failed run is counted, and PostgreSQL has no memory for its dead letter.
TEST_F(Ending, TheHandlerDoesNotRunOnceMoreIfItsDeadLetterMeetsAnOutage) {
  database.run(
      "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'full' USING ERRCODE = '53200'; END $$;"
      "CREATE TRIGGER no BEFORE INSERT ON hapax.dead_letters FOR EACH ROW EXECUTE FUNCTION no()");
  const Body fails = [](const Message&, Context&) { throw std::runtime_error("no"); };
  Given given;
  for (int i = 0; i < 6; ++i) {
    const Outcome outcome = process({}, fails, given);
    EXPECT_FALSE(is_settled(outcome.result));
    given.attempts = std::max(given.attempts, outcome.attempts);  // as worker/settler.cpp
  }
  EXPECT_EQ(runs, 3);
  database.run("DROP TRIGGER no ON hapax.dead_letters");
  EXPECT_EQ(process({}, fails, given).reason, "attempts_exhausted");
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace hapax::flow
