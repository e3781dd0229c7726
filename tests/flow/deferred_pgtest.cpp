// context.write and context.sql: order, parameters, errors and the cache of prepared texts.
#include "flow/flow_case.hpp"

#include <cmath>
#include <limits>
#include <pqxx/pqxx>

namespace hapax::flow {
namespace {

using Deferred = FlowCase;
using namespace std::string_literals;

constexpr const char* kInsert = "INSERT INTO effects (key, note) VALUES ($1, $2)";

TEST_F(Deferred, WritesAreSentInOrderWithTheCompletion) {
  process({}, [](const Message&, Context& context) {
    context.write(kInsert, "a", 1);
    context.write("UPDATE effects SET note = note || $1 WHERE key = 'a'", "+");
    context.write(kInsert, "b", 2);
  });
  EXPECT_EQ(effects(), "a=1+ b=2");
  EXPECT_EQ(key_row(), "completed@0");
}

TEST_F(Deferred, AHandlerReadsItsOwnWrites) {
  process({}, [this](const Message&, Context& context) {
    context.write(kInsert, "a", 1);
    EXPECT_EQ(context.sql("SELECT note FROM effects")[0][0].text(), "1");
    context.write(kInsert, "b", 2);
    EXPECT_EQ(context.pqxx().exec("SELECT * FROM effects").size(), 2U);
    EXPECT_EQ(effects(), "");  // no other session sees it
  });
  EXPECT_EQ(effects(), "a=1 b=2");
}

// The text is prepared when it is first seen, and must find what was deferred before it.
TEST_F(Deferred, LaterTextsSeeTablesThatEarlierOnesMake) {
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    context.write("CREATE TEMP TABLE scratch (n int) ON COMMIT DROP");
    context.write("INSERT INTO scratch VALUES ($1)", 7);
    EXPECT_EQ(context.sql("SELECT n FROM scratch")[0][0].as<int>(), 7);
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
}

TEST_F(Deferred, AnErrorAfterTheHandlerReturnedIsAnAttemptThatNamesItsState) {
  database.run("ALTER TABLE effects ADD UNIQUE (note)");
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    context.write(kInsert, "a", 1);
    context.write(kInsert, "b", 1);
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.sqlstate, "23505");
  EXPECT_EQ(database.value("SELECT sqlstate FROM hapax.attempts"), "23505");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(key_row(), "");
}

TEST_F(Deferred, TenThousandWritesArriveWithoutBeingHeldInMemory) {
  const Outcome outcome = process({}, [this](const Message&, Context& context) {
    const std::string note(500, 'x');
    for (int i = 0; i < 10'000; ++i) context.write(kInsert, i, note);
    // Sent before the handler returned: the backend has them, and others do not see them.
    EXPECT_EQ(count("effects"), 0);
    EXPECT_GT(database.count("SELECT pg_relation_size('effects') / 1000000"), 3);
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(database.value("SELECT count(*), count(DISTINCT key) FROM effects"), "10000|10000");
}

TEST_F(Deferred, ParametersOfEveryTypeArriveAsTheyWere) {
  database.run(
      "CREATE TABLE typed (t text, i bigint, d double precision, b boolean, y bytea, "
      "j json, n text, o int); GRANT ALL ON typed TO hapax_worker");
  const std::string text = "it's \\ \"quoted\" $1 %s \n\t \u00e9 \U0001F600 E'x' --";
  const std::string bytes = "\0\x01\xff\\'"s;
  const nlohmann::json json = {{"a", {1, "it's", nullptr}}, {"b", "\\\""}};
  const Outcome outcome = process({}, [&](const Message&, Context& context) {
    const char* const insert = "INSERT INTO typed VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    context.sql(insert, text, std::numeric_limits<std::int64_t>::min(), 0.1, true,
                Parameter::bytes(bytes), json, nullptr, std::optional<int>());
    const Row row = context.sql("SELECT * FROM typed")[0];
    EXPECT_EQ(row["t"].text(), text);
    EXPECT_EQ(row["i"].as<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(row["d"].as<double>(), 0.1);
    EXPECT_TRUE(row["b"].as<bool>());
    EXPECT_EQ(row["y"].text(), *Parameter::bytes(bytes).text());
    EXPECT_EQ(row["j"].as<nlohmann::json>(), json);
    EXPECT_TRUE(row["n"].is_null());
    EXPECT_EQ(row["o"].as<std::optional<int>>(), std::nullopt);
    EXPECT_TRUE(std::isnan(context.sql("SELECT $1::float8", std::nan(""))[0][0].as<double>()));
    EXPECT_EQ(context.sql("SELECT $1::text", nlohmann::json("plain"))[0][0].text(), "plain");
    EXPECT_TRUE(context.sql("SELECT $1::text", nlohmann::json(nullptr))[0][0].is_null());
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
}

// With the setting off a plain '…\' would end elsewhere than it looks.
TEST_F(Deferred, QuotingHoldsUnderAnySettingOfTheHandler) {
  const std::string hostile = "\\'); DELETE FROM effects; --";
  for (const char* setting : {"SET standard_conforming_strings TO off", "SET backslash_quote TO on",
                              "SET escape_string_warning TO on"}) {
    const Outcome outcome = process({.key = setting}, [&](const Message&, Context& context) {
      context.sql(setting);
      context.write(kInsert, "quoted", hostile);
      EXPECT_EQ(context.sql("SELECT $1::text", hostile)[0][0].text(), hostile);
    });
    EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  }
  EXPECT_EQ(database.value("SELECT count(*), count(DISTINCT note) FROM effects"), "3|1");
}

TEST_F(Deferred, RefusesANulByteInText) {
  const Outcome outcome =
      process({}, [](const Message&, Context& context) { context.write(kInsert, "a", "x\0y"s); });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_EQ(outcome.sqlstate, "22021");
  EXPECT_EQ(effects(), "");
}

// Cut off there, it would be another statement.
TEST_F(Deferred, RefusesANulByteInTheTextOfAStatement) {
  process({.key = "a"});
  const std::string text("DELETE FROM effects\0 WHERE key = 'b'", 36);
  for (const Body& body :
       std::vector<Body>{[&](const Message&, Context& context) { context.sql(text); },
                         [&](const Message&, Context& context) { context.write(text); },
                         [](const Message&, Context& context) {
                           context.insert(std::string_view("effects\0s", 9), {"key"}, "k");
                         }}) {
    const Outcome outcome = process({.key = "b", .offset = 1}, body);
    EXPECT_EQ(outcome.sqlstate, "22021") << outcome.detail;
  }
  EXPECT_EQ(count("effects"), 1);
}

// As any SQL error, which has aborted the transaction.
TEST_F(Deferred, ANulByteWhoseErrorIsSwallowedIsAnAttempt) {
  const std::string nul("x\0y", 3);
  std::int64_t offset = 0;
  for (const std::function<void(Context&)>& write : std::vector<std::function<void(Context&)>>{
           [&](Context& context) { context.sql(kInsert, "a", nul); },
           [&](Context& context) { context.sql("SELECT 1" + nul); },
           [&](Context& context) { context.write(kInsert, "a", nul); },
           [&](Context& context) {
             for (const std::string& note : {std::string("x"), nul})
               context.insert("effects", {"key", "note"}, "a", note);
           }}) {
    const Outcome outcome = process({.offset = offset++}, [&](const Message&, Context& context) {
      try {
        write(context);
      } catch (const SqlError&) {
      }
    });
    EXPECT_EQ(outcome.result, Result::retry) << offset;
    EXPECT_NE(outcome.detail.find("Parameter::bytes"), std::string::npos) << outcome.detail;
  }
  EXPECT_EQ(effects(), "");
}

TEST_F(Deferred, RefusesSeveralStatementsInOneText) {
  for (const char* text :
       {"SELECT 1; SELECT 2", "INSERT INTO effects (key) VALUES ('a'); COMMIT"}) {
    const Outcome outcome =
        process({}, [&](const Message&, Context& context) { context.sql(text); });
    EXPECT_EQ(outcome.result, Result::halt_route);
    EXPECT_EQ(outcome.sqlstate, "42601");
  }
  EXPECT_EQ(effects(), "");
}

TEST_F(Deferred, RefusesAWrongNumberOfValues) {
  EXPECT_EQ(
      process({}, [](const Message&, Context& context) { context.write(kInsert, "only one"); })
          .result,
      Result::halt_route);
}

TEST_F(Deferred, EachTextIsPreparedOnceAndTheCacheIsBounded) {
  const int bound = static_cast<int>(store::Session::kMaxUserStatements);
  const Outcome outcome = process({}, [&](const Message&, Context& context) {
    const auto prepared = [&] {
      return context
          .sql(
              "SELECT count(*) FROM pg_prepared_statements "
              "WHERE name LIKE 'hapax_user%'")[0][0]
          .as<int>();
    };
    for (int i = 0; i < 3; ++i) context.sql("SELECT 'same'");
    EXPECT_EQ(prepared(), 2);
    for (int i = 0; i < bound + 1; ++i) context.sql("SELECT " + std::to_string(i));
    EXPECT_EQ(prepared(), bound);
    context.sql("SELECT 'same'");  // forgotten, and prepared again
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
}

// A text that is forgotten while a deferred write still names it would fail, each time.
TEST_F(Deferred, MoreDistinctDeferredTextsThanTheCacheHoldsAllArrive) {
  const int many = static_cast<int>(store::Session::kMaxUserStatements) + 100;
  const Outcome outcome = process({}, [&](const Message&, Context& context) {
    for (int i = 0; i < many; ++i)
      context.write("INSERT INTO effects (key, note) VALUES ('" + std::to_string(i) + "', $1)", i);
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(count("effects"), many);
}

TEST_F(Deferred, RowsOutliveTheTransaction) {
  Rows rows;
  process({},
          [&](const Message&, Context& context) { rows = context.sql("SELECT 'kept' AS word"); });
  EXPECT_EQ(rows[0]["word"].text(), "kept");
}

}  // namespace
}  // namespace hapax::flow
