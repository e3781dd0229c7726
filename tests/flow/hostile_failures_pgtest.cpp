// Whose failure it is: the message's, the route's, or PostgreSQL's.
#include <pqxx/pqxx>

#include "flow/hostile_case.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::flow {
namespace {

using testing::HasSubstr;

TEST_F(Hostile, ItsErrorsAtTheCompletionAreCounted) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'not balanced' USING ERRCODE = 'BK001'; END $$;"
      "CREATE TABLE balanced (n int); GRANT INSERT ON balanced TO hapax_worker;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON balanced DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION refuse();"
      // Less than our own stack holds under AddressSanitizer.
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET max_stack_depth = ''100kB''', "
      "current_database()); END $$");
  std::string deep = "1";
  for (int i = 0; i < 1'000; ++i) deep = "[" + deep + "]";
  route.max_result_bytes = 1'000'000;
  const Body bodies[] = {
      [](const Message&, Context& context) { context.sql("INSERT INTO balanced VALUES (1)"); },
      [&](const Message&, Context& context) { context.result(nlohmann::json::parse(deep)); },
  };
  std::int64_t offset = 0;
  for (const Body& body : bodies) {
    const Outcome outcome = settle({.key = std::to_string(++offset), .offset = offset}, body);
    EXPECT_EQ(outcome.result, Result::failed) << offset << outcome.reason << outcome.detail;
    EXPECT_EQ(outcome.reason, "attempts_exhausted") << offset;
    EXPECT_EQ(outcome.attempts, 3) << offset;
  }
}

TEST_F(Hostile, MayTakeARoleForTheLengthOfItsTransaction) {
  database.run(
      "DO $$ BEGIN CREATE ROLE clerk; EXCEPTION WHEN duplicate_object THEN END $$;"
      "GRANT clerk TO hapax_worker;"
      "GRANT USAGE ON SCHEMA public TO clerk; GRANT INSERT ON effects TO clerk");
  bool failed = false;
  const Outcome outcome = settle({}, [&](const Message& message, Context& context) {
    context.sql("SET LOCAL ROLE clerk");
    book(message, context);
    context.result(7);
    if (!std::exchange(failed, true)) throw std::runtime_error("once");
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.reason << outcome.detail;
  EXPECT_EQ(effects(), "k1=10");
  database.run("DROP OWNED BY clerk; REVOKE clerk FROM hapax_worker");
}

TEST_F(Hostile, ThatMakesItsTransactionReadOnlyIsNotTakenForOneThatEndedIt) {
  bool failed = false;
  const Outcome outcome = settle({}, [&](const Message& message, Context& context) {
    book(message, context);
    if (!std::exchange(failed, true)) throw std::runtime_error("once");
    context.sql("SET TRANSACTION READ ONLY");
  });
  EXPECT_FALSE(is_halt(outcome.result)) << outcome.reason << outcome.detail;
  const Outcome writes = process({.key = "k2", .offset = 2}, [](const Message& m, Context& c) {
    c.sql("SET TRANSACTION READ ONLY");
    book(m, c);
  });
  EXPECT_EQ(writes.result, Result::retry) << writes.reason << writes.detail;
}

TEST_F(Hostile, ThatFailsForEverAsIfItWereNobodysFaultIsCountedInTheEnd) {
  database.run(
      "CREATE FUNCTION raise(state text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'always' USING ERRCODE = state; END $$");
  std::int64_t offset = 0;
  const Body bodies[] = {
      [](const Message&, Context& context) { context.pqxx().exec("EXECUTE nonexistent"); },
      [](const Message&, Context& context) { context.sql("SELECT raise('40001')"); },
      [](const Message&, Context& context) { context.sql("SELECT raise('40P01')"); },
      [](const Message&, Context& context) { context.sql("SELECT raise('42P05')"); },
  };
  for (const Body& body : bodies) {
    const Outcome outcome = settle({.key = std::to_string(++offset), .offset = offset}, body);
    EXPECT_EQ(outcome.result, Result::failed) << offset << outcome.reason << outcome.detail;
    EXPECT_EQ(outcome.reason, "attempts_exhausted") << offset;
  }
}

TEST_F(Hostile, WhoseExtensionLacksItsLibraryHaltsItsRouteAndNotTheWorker) {
  database.run(
      "CREATE FUNCTION raise(state text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'could not access file' USING ERRCODE = state; END $$");
  const Outcome outcome =
      settle({}, [](const Message&, Context& context) { context.sql("SELECT raise('58P01')"); });
  EXPECT_EQ(outcome.result, Result::halt_route) << outcome.reason << outcome.detail;
}

TEST_F(Hostile, WhoseSqlIsWrongForEachMessageHaltsItsRouteAtOnce) {
  database.run("CREATE TABLE secrets (n int)");
  std::int64_t offset = 0;
  for (const char* text : {"SELECT * FROM no_such_table", "SELECT no_such_column FROM effects",
                           "SELECT * FROM secrets", "SELECT no_such_function()", "SELEC 1"}) {
    for (const bool deferred : {false, true}) {
      const Outcome outcome = settle({.key = std::to_string(++offset), .offset = offset},
                                     [&](const Message& message, Context& context) {
                                       book(message, context);
                                       deferred ? context.write(text) : void(context.sql(text));
                                     });
      EXPECT_EQ(outcome.result, Result::halt_route) << text << outcome.reason << outcome.detail;
      EXPECT_EQ(outcome.reason, "statement_refused") << text;
      if (outcome.sqlstate != "42501") {
        EXPECT_THAT(outcome.detail, HasSubstr(text));
      }
      EXPECT_THAT(outcome.detail, testing::Not(HasSubstr("PREPARE"))) << text;
    }
  }
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(effects(), "");
}

TEST_F(Hostile, WhoseCopyIsAPlainStatementIsToldHowToCopy) {
  database.run("GRANT SELECT, INSERT ON effects TO hapax_worker");
  std::int64_t offset = 0;
  for (const char* text : {"COPY effects (key, note) FROM STDIN", "copy (SELECT 1) TO stdout"})
    for (const bool swallowed : {false, true})
      for (const bool deferred : {false, true}) {
        const Outcome outcome = settle({.key = std::to_string(++offset), .offset = offset},
                                       [&](const Message& message, Context& context) {
                                         book(message, context);
                                         const auto copy = [&] {
                                           deferred ? context.write(text) : void(context.sql(text));
                                         };
                                         swallowed ? swallow(copy) : copy();
                                       });
        EXPECT_EQ(outcome.result, swallowed ? Result::failed : Result::halt_route)
            << text << outcome.reason << outcome.detail;
        EXPECT_THAT(outcome.detail, HasSubstr("a stream of libpqxx on context.pqxx()")) << text;
      }
  EXPECT_EQ(effects(), "");
}

// libpqxx 6 keeps the error of the destructor, and throws it at hapax's next statement.
TEST_F(Hostile, WhoseCopyFailsIsCounted) {
  database.run(
      "CREATE TABLE once (id int PRIMARY KEY); INSERT INTO once VALUES (1);"
      "GRANT SELECT, INSERT ON once TO hapax_worker");
  const Outcome outcome = settle({}, [](const Message& message, Context& context) {
    book(message, context);
#if PQXX_VERSION_MAJOR < 7
    pqxx::stream_to rows(context.pqxx(), "once", std::vector<std::string>{"id"});
#else
    auto rows = pqxx::stream_to::table(context.pqxx(), {"once"}, {"id"});
#endif
    rows << std::make_tuple(1);
  });
  EXPECT_EQ(outcome.result, Result::failed) << outcome.reason << outcome.detail;
  EXPECT_THAT(outcome.detail, HasSubstr("duplicate key"));
  EXPECT_EQ(effects(), "");
}

// Nothing takes effect: libpqxx sends no further statement.
TEST_F(Hostile, ThatLeavesAStreamOfLibpqxxOpenIsToldSo) {
  database.run("CREATE TABLE once (id int); GRANT SELECT, INSERT ON once TO hapax_worker");
  static auto& left = *new std::vector<void*>;  // whose transaction is gone: never destroyed
  const Body bodies[] = {[](const Message& message, Context& context) {
                           book(message, context);
#if PQXX_VERSION_MAJOR < 7
                           auto* const rows = new pqxx::stream_to(context.pqxx(), "once",
                                                                  std::vector<std::string>{"id"});
#else
                           auto* const rows = new pqxx::stream_to(
                               pqxx::stream_to::table(context.pqxx(), {"once"}, {"id"}));
#endif
                           *rows << std::make_tuple(1);
                           left.push_back(rows);
                         },
                         [](const Message& message, Context& context) {
                           book(message, context);
                           auto* const pipeline = new pqxx::pipeline(context.pqxx());
                           pipeline->insert("INSERT INTO once VALUES (1)");
                           left.push_back(pipeline);
                         }};
  std::int64_t offset = 0;
  for (const Body& body : bodies) {
    const Outcome outcome = settle({.key = std::to_string(++offset), .offset = offset}, body);
    EXPECT_EQ(outcome.result, Result::halt_route) << outcome.reason << ": " << outcome.detail;
    EXPECT_THAT(outcome.detail,
                testing::AllOf(HasSubstr("left a stream or pipeline of libpqxx open"),
                               HasSubstr("still open")));
  }
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(count("once"), 0);
}

TEST_F(Hostile, IsAnsweredWithWhatItSwallowed) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    swallow([&] { context.sql("SELECT 1 / (1 - 1)"); });
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_THAT(outcome.detail, HasSubstr("division by zero"));
}

TEST_F(Hostile, ThrowsNestedExceptionsWhoseInnerOnesAreKept) {
  const Body bodies[] = {
      [](const Message&, Context& context) {
        try {
          context.sql("SELECT 1 / (1 - 1)");
        } catch (...) {
          std::throw_with_nested(std::runtime_error("while booking"));
        }
      },
      [](const Message&, Context&) {
        try {
          throw std::out_of_range("no rate");
        } catch (...) {
          std::throw_with_nested(Reject("while booking"));
        }
      },
  };
  const Outcome sql = process({}, bodies[0]);
  EXPECT_THAT(sql.detail, HasSubstr("while booking: "));
  EXPECT_THAT(sql.detail, HasSubstr("division by zero"));
  EXPECT_EQ(sql.sqlstate, "22012");
  const Outcome reject = process({.key = "k2", .offset = 2}, bodies[1]);
  EXPECT_EQ(reject.reason, "rejected");
  EXPECT_THAT(reject.detail, HasSubstr("while booking: no rate"));
}

TEST_F(Hostile, ThatThrowsAnSqlErrorAgainByValueKeepsItsClass) {
  database.run(
      "CREATE FUNCTION raise(state text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'always' USING ERRCODE = state; END $$");
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    try {
      context.sql("SELECT raise('40P01')");
    } catch (SqlError& error) {
      throw SqlError(error);
    }
  });
  EXPECT_EQ(outcome.result, Result::again) << outcome.detail;
}

TEST_F(Hostile, ThatWantsToBeRunLaterIsNotRunAtOnceBecauseItIsInABatch) {
  const Body body = [](const Message& message, Context& context) {
    book(message, context);
    if (*message.header("id") == "b") throw Retry("later", std::chrono::seconds(5));
  };
  EXPECT_EQ(take({"a", "b", "c"}, body), "completed, retry, completed");
  EXPECT_EQ(effects(), "a=book c=book");
  EXPECT_EQ(database.value("SELECT count FROM hapax.attempts"), "1");
  EXPECT_EQ(runs, 4) << "a, b; then a and c without it";
}

// ---- the session ----

// The old primary still lives and answers: only another connection leads to the new one.
TEST_F(Hostile, ASessionOfAnotherIncarnationIsReplaced) {
  database.run("INSERT INTO hapax.incarnation DEFAULT VALUES ON CONFLICT DO NOTHING");
  store::Session session(options);
  const std::string now = store::read_store(session).incarnation;
  int connected = 0;
  Processor processor(
      [&] {
        ++connected;
        return store::Session(options);
      },
      1);
  EXPECT_EQ(process_on(processor, {}, book, {.incarnation = now}).result, Result::completed);
  EXPECT_EQ(connected, 1);
  const Sent next{.key = "k2", .offset = 2};
  EXPECT_EQ(process_on(processor, next, book, {.incarnation = "another"}).result, Result::busy);
  EXPECT_EQ(process_on(processor, next, book, {.incarnation = now}).result, Result::completed);
  EXPECT_EQ(connected, 2);
}

}  // namespace
}  // namespace hapax::flow
