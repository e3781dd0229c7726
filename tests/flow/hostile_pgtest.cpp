// What a handler can do to its transaction and its session, and who must not pay for it.
#include <pqxx/pqxx>

#include "flow/hostile_case.hpp"

namespace hapax::flow {
namespace {

using testing::HasSubstr;

TEST_F(Hostile, ThatFailsInATransactionOfItsOwnHaltsBeforeASecondEffect) {
  expect_one_effect_and_a_halt([](const Message&, Context& context) {
    commit_an_effect(context);
    context.pqxx().exec("SELECT 1 / 0");
  });
}

TEST_F(Hostile, ThatSwallowsItsErrorInATransactionOfItsOwnHalts) {
  expect_one_effect_and_a_halt([](const Message&, Context& context) {
    commit_an_effect(context);
    swallow([&] { context.pqxx().exec("SELECT 1 / 0"); });
  });
}

TEST_F(Hostile, ThatThrowsItsOwnInAnAbortedTransactionOfItsOwnHalts) {
  expect_one_effect_and_a_halt([](const Message&, Context& context) {
    commit_an_effect(context);
    swallow([&] { context.pqxx().exec("SELECT 1 / 0"); });
    throw Reject("no");
  });
}

TEST_F(Hostile, ThatEndedItsTransactionThroughLibpqxxTooHalts) {
  for (const bool aborts : {false, true}) {
    database.run("TRUNCATE effects");
    expect_one_effect_and_a_halt([&](const Message&, Context& context) {
      commit_an_effect(context);
      aborts ? context.pqxx().abort() : context.pqxx().commit();
      throw Retry("later");
    });
    database.run("TRUNCATE hapax.idempotency_keys");
  }
}

TEST_F(Hostile, WhoseDeferredWriteFailsBehindATransactionOfItsOwnHalts) {
  for (const bool begins : {false, true}) {
    database.run("TRUNCATE effects");
    const Outcome outcome = settle({}, [&](const Message&, Context& context) {
      commit_an_effect_by_sql(context);
      if (begins) context.sql("BEGIN READ WRITE");
      context.write("SELECT $1::int", "no number");
    });
    EXPECT_EQ(outcome.reason, "handler_ended_transaction") << outcome.detail;
    EXPECT_LE(count("effects"), 1);
    EXPECT_EQ(count("hapax.attempts"), 0);
    database.run("TRUNCATE hapax.idempotency_keys");
  }
}

TEST_F(Hostile, OfABatchThatFailsInATransactionOfItsOwnHalts) {
  EXPECT_THAT(take({"a", "b", "c"},
                   [](const Message& message, Context& context) {
                     book(message, context);
                     if (*message.header("id") != "b") return;
                     commit_an_effect(context);
                     context.pqxx().exec("SELECT 1 / 0");
                   }),
              HasSubstr("halt_route"));
  EXPECT_EQ(count("effects"), 1);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

// An error of its own transaction, savepoints and all, is an attempt as ever.
TEST_F(Hostile, ThatOnlyFailedInTheTransactionItWasLentIsCounted) {
  const Body bodies[] = {
      [](const Message& message, Context& context) {
        book(message, context);
        context.pqxx().exec("SAVEPOINT own");
        context.pqxx().exec("SELECT 1 / 0");
      },
      [](const Message& message, Context& context) {
        book(message, context);
        context.sql("SAVEPOINT own");
        swallow([&] { context.sql("SELECT 1 / 0"); });
      },
      [](const Message& message, Context& context) {
        book(message, context);
        pqxx::subtransaction inner(context.pqxx(), "inner");
        inner.exec("SELECT 1 / 0");
      },
      [](const Message& message, Context& context) {
        book(message, context);
        context.sql("SET LOCAL lock_timeout TO 77");
        context.write("SELECT $1::int", "no number");
      },
  };
  std::int64_t offset = 0;
  for (const Body& body : bodies) {
    const Outcome outcome =
        process({.key = "k" + std::to_string(++offset), .offset = offset}, body);
    EXPECT_EQ(outcome.result, Result::retry) << offset << outcome.reason << outcome.detail;
    EXPECT_EQ(outcome.attempts, 1) << offset;
  }
  EXPECT_EQ(effects(), "");
}

// ---- what is left in the session ----

TEST_F(Hostile, LeavesNoTemporaryTableToItsNeighbourHoweverItIsWritten) {
  database.run(
      "CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools TO hapax_worker;"
      "CREATE FUNCTION tools.shadow() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
      "CREATE TEMP TABLE effects (key text, note text); END $$");
  std::int64_t offset = 0;
  for (const char* text :
       {"SELECT 'a' AS key, 'b' AS note INTO TEMP effects",
        "SELECT 'a' AS key, 'b' AS note INTO  TEMP effects",
        "SELECT 'a' AS key, 'b' AS note INTO\nTEMP effects",
        "SELECT 'a' AS key, 'b' AS note INTO/**/TEMPORARY effects",
        "SELECT 'a' AS key, 'b' AS note INTO LOCAL TEMP effects",
        "SELECT 'a' AS key, 'b' AS note INTO pg_temp.effects",
        "/* a comment */ SELECT 'a' AS key, 'b' AS note INTO pg_temp.effects",
        "-- a comment\nCREATE TEMP TABLE effects (key text, note text)",
        "WITH x AS (SELECT 'a' AS key, 'b' AS note) SELECT * INTO TEMP effects FROM x",
        "SELECT tools.shadow()", "SELECT \"tools\" . \"shadow\" ()",
        "INSERT INTO effects (key) SELECT 'x' WHERE tools.shadow() IS NULL AND false"}) {
    const Sent odd{.key = "odd" + std::to_string(offset), .offset = offset};
    const Outcome outcome =
        process(odd, [&](const Message&, Context& context) { context.sql(text); });
    EXPECT_EQ(outcome.result, Result::completed) << text << outcome.detail;
    ++offset;
    const Sent next{.key = "next" + std::to_string(offset), .offset = offset};
    // A text that is prepared already keeps its table.
    const Outcome books = process(next, [](const Message& message, Context& context) {
      const std::string key(*message.header("id"));
      context.sql("INSERT INTO effects (key) VALUES ('" + key + "')");
    });
    EXPECT_EQ(books.result, Result::completed) << text << books.detail;
    EXPECT_EQ(database.count("SELECT count(*) FROM public.effects WHERE key = '" + next.key + "'"),
              1)
        << text;
    ++offset;
  }
}

TEST_F(Hostile, LeavesNoSettingRoleOrLockToItsNeighbour) {
  database.run(
      "CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools TO hapax_worker;"
      "CREATE FUNCTION tools.aside() RETURNS text LANGUAGE sql AS "
      "$$ SELECT set_config('search_path', 'elsewhere', false) $$;"
      "CREATE TABLE tools.rows (n int); INSERT INTO tools.rows VALUES (1);"
      "GRANT SELECT ON tools.rows TO hapax_worker;"
      "CREATE FUNCTION tools.of_row(tools.rows) RETURNS text LANGUAGE sql AS "
      "$$ SELECT tools.aside() $$;"
      "CREATE FUNCTION tools." +
      std::string(63, 'a') + "() RETURNS text LANGUAGE sql AS $$ SELECT tools.aside() $$");
  const std::string cut_off = "SELECT tools." + std::string(64, 'a') + "()";
  std::int64_t offset = 0;
  for (const char* text :
       {"SELECT pg_catalog . set_config ('search_path', 'elsewhere', false)",
        "SELECT \"set_config\"('search_path', 'elsewhere', false)",
        "SELECT U&\"set\\005fconfig\"('search_path', 'elsewhere', false)", "SELECT tools.aside()",
        cut_off.c_str(), "SELECT r.of_row FROM tools.rows r", "SELECT (r).of_row FROM tools.rows r",
        "SELECT E'x'\n'b\\'c', tools.aside(), ' '",
        "UPDATE pg_settings SET setting = 'elsewhere' WHERE name = 'search_path'",
        "SELECT count(*) FROM tools.aside()",
        "SELECT query_to_xml('SELECT tools.aside()', true, true, '')",
        "/**/ SET search_path TO elsewhere", "--\nSET search_path TO elsewhere"}) {
    const Sent odd{.key = "odd" + std::to_string(offset), .offset = offset};
    process(odd, [&](const Message&, Context& context) { context.sql(text); });
    ++offset;
    std::string path;
    const Outcome next = process({.key = "next" + std::to_string(offset), .offset = offset},
                                 [&](const Message&, Context& context) {
                                   path = context.sql("SHOW search_path")[0][0].text();
                                 });
    EXPECT_EQ(next.result, Result::completed) << text;
    EXPECT_EQ(path, "\"$user\", public") << text;
    ++offset;
  }
}

TEST_F(Hostile, LeavesNoPreparedStatementOfItsOwn) {
  for (std::int64_t offset = 0; offset < 3; ++offset) {
    const Sent sent{.key = std::to_string(offset), .offset = offset};
    const Outcome outcome = process(sent, [](const Message& message, Context& context) {
      book(message, context);
      context.pqxx().exec("PREPARE mine AS SELECT 1");
    });
    EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  }
}

// Cleaning costs a round trip, and the next message's key is not taken ahead.
TEST_F(Hostile, OrdinaryStatementsLeaveNothingThatMustBeCleaned) {
  store::Session session(options);
  session.serve_handlers();
  store::Transaction transaction(session);
  for (const char* text :
       {"SELECT count(*), coalesce(max(lower(note)), to_char(now(), 'YYYY')) FROM effects",
        "SELECT pg_advisory_xact_lock(hashtext('a'))", "SELECT FROM effects FOR UPDATE",
        "INSERT INTO effects (key, note) VALUES ('a', gen_random_uuid()) RETURNING id",
        "WITH x AS (SELECT 1) UPDATE effects SET note = (SELECT 1) WHERE key IN ('a', 'b')",
        "DELETE FROM effects WHERE note = ANY (ARRAY['a'])"}) {
    transaction.query(text, {});
    EXPECT_TRUE(session.is_clean()) << text;
    EXPECT_FALSE(transaction.is_watched()) << text;
  }
  transaction.query("SET LOCAL lock_timeout TO 77", {});
  EXPECT_FALSE(session.is_clean());
}

// ---- order ----

TEST_F(Hostile, InsertsOfOneTableNeverPassThoseOfAnother) {
  database.run(
      "CREATE TABLE orders (id int PRIMARY KEY);"
      "CREATE TABLE items (order_id int REFERENCES orders, n int);"
      "INSERT INTO orders VALUES (1);"
      "GRANT SELECT, INSERT, UPDATE ON orders, items TO hapax_worker");
  for (std::int64_t offset = 0; offset < 3; ++offset) {
    const int made = 10 + static_cast<int>(offset);
    const Outcome outcome = settle({.key = std::to_string(offset), .offset = offset},
                                   [&](const Message&, Context& context) {
                                     context.insert("items", {"order_id", "n"}, 1, 1);
                                     context.insert("orders", {"id"}, made);
                                     context.insert("items", {"order_id", "n"}, made, 1);
                                   });
    EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  }
  EXPECT_EQ(count("items"), 6);
}

TEST_F(Hostile, RowsThatJoinKeepTheirNullsUnderArrayNullsOff) {
  database.run(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET array_nulls = off', current_database()); "
      "END $$; CREATE TABLE notes (id int, note text); GRANT INSERT ON notes TO hapax_worker");
  const Outcome outcome = settle({}, [](const Message&, Context& context) {
    for (int id = 0; id < 3; ++id) context.insert("notes", {"id", "note"}, id, nullptr);
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(database.count("SELECT count(*) FROM notes WHERE note IS NULL"), 3);
}

TEST_F(Hostile, InsertsOfOneTableNeverPassThoseOfAnotherMessageOfTheirBatch) {
  database.run(
      "CREATE TABLE orders (id int PRIMARY KEY);"
      "CREATE TABLE items (order_id int REFERENCES orders, n int);"
      "INSERT INTO orders VALUES (1);"
      "GRANT SELECT, INSERT, UPDATE ON orders, items TO hapax_worker");
  const Body body = [](const Message& message, Context& context) {
    const std::string id(*message.header("id"));
    if (id.starts_with("order ")) return context.insert("orders", {"id"}, id.substr(6));
    context.insert("items", {"order_id", "n"}, id.substr(5), 1);
  };
  take({"item 1"}, body);  // what is new to a connection is sent at once
  take({"order 2"}, body);
  runs = 0;
  EXPECT_EQ(take({"more 1", "order 3", "item 3"}, body), "completed, completed, completed");
  EXPECT_EQ(count("items"), 3);
  EXPECT_EQ(runs, 3) << "no batch was undone";
}

// ---- migrations of the handler's tables ----

TEST_F(Hostile, ItsTablesMayChangeUnderARunningSession) {
  database.run(
      "CREATE TYPE mood AS ENUM ('glad');"
      "CREATE TABLE moods (k text, m mood, n int);"
      "GRANT SELECT, INSERT, UPDATE ON moods TO hapax_worker");
  std::int64_t offset = 0;
  const auto store = [&](const std::string& mood, const std::string& number) {
    ++offset;
    return settle(
        {.key = std::to_string(offset), .offset = offset}, [&](const Message&, Context& context) {
          context.sql("INSERT INTO moods (k, m, n) VALUES ($1, $2, $3)", offset, mood, number);
        });
  };
  const auto expect_stored = [&](const std::string& mood, const std::string& number) {
    const Outcome outcome = store(mood, number);
    EXPECT_EQ(outcome.result, Result::completed) << outcome.sqlstate << outcome.detail;
  };
  expect_stored("glad", "1");
  database.run(
      "ALTER TYPE mood RENAME TO old_mood; CREATE TYPE mood AS ENUM ('glad', 'sad');"
      "ALTER TABLE moods ALTER m TYPE mood USING m::text::mood; DROP TYPE old_mood");
  expect_stored("sad", "2");
  database.run("ALTER TABLE moods ALTER n TYPE text");
  expect_stored("glad", "three");
  database.run("ALTER TABLE moods DROP n; ALTER TABLE moods ADD n date");
  expect_stored("glad", "2026-11-22");
  EXPECT_EQ(count("moods"), 4);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

}  // namespace
}  // namespace hapax::flow
