// context.insert: values, names, order and errors, of one row alone and of many together.
#include "flow/flow_case.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <random>

namespace hapax::flow {
namespace {

using namespace std::string_literals;

class Insert : public FlowCase {
 protected:
  Outcome run(const Body& body) {
    return settle({.key = "k" + std::to_string(++offset_), .offset = offset_}, body);
  }

  // Counts the INSERTs that reach `table`.
  void count_statements(const std::string& table) {
    database.run(
        "CREATE TABLE IF NOT EXISTS statements (relation text);"
        "CREATE OR REPLACE FUNCTION count_statements() RETURNS trigger LANGUAGE plpgsql "
        "SECURITY DEFINER AS $$ BEGIN INSERT INTO statements VALUES (TG_TABLE_NAME); "
        "RETURN NULL; END $$;"
        "CREATE TRIGGER counted AFTER INSERT ON " +
        table + " FOR EACH STATEMENT EXECUTE FUNCTION count_statements()");
  }
  std::string statements() {
    return database.value(
        "SELECT string_agg(relation || ' ' || n, ', ' ORDER BY relation) FROM (SELECT relation, "
        "count(*) AS n FROM statements GROUP BY relation) AS s");
  }

 private:
  std::int64_t offset_ = 0;
};

TEST_F(Insert, RowsOfOneTableThatFollowEachOtherBecomeOneStatement) {
  database.run("CREATE TABLE marks (effect text); GRANT INSERT ON marks TO hapax_worker");
  count_statements("effects");
  count_statements("marks");
  const Body book_five = [](const Message&, Context& context) {
    for (int i = 0; i < 5; ++i) context.insert("effects", {"key", "note"}, i, "n");
    for (int i = 0; i < 5; ++i) context.insert("marks", {"effect"}, i);
  };
  run(book_five);  // a text that is new to the connection sends what was deferred before it
  database.run("TRUNCATE effects, marks, statements");
  const Outcome outcome = run(book_five);
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(effects(), "0=n 1=n 2=n 3=n 4=n");
  EXPECT_EQ(database.value("SELECT string_agg(effect, '') FROM marks"), "01234");
  EXPECT_EQ(statements(), "effects 1, marks 1");
}

// A foreign key across the two would not hold otherwise.
TEST_F(Insert, RowsOfSeveralTablesGoOutInTheirOrder) {
  database.run(
      "CREATE TABLE accounts (id int PRIMARY KEY);"
      "CREATE TABLE entries (account int REFERENCES accounts, n int);"
      "GRANT SELECT, INSERT, UPDATE ON accounts, entries TO hapax_worker");
  const Outcome outcome = run([](const Message&, Context& context) {
    for (int i = 0; i < 3; ++i) {
      context.insert("accounts", {"id"}, i);
      context.insert("entries", {"account", "n"}, i, 1);
    }
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(count("entries"), 3);
}

TEST_F(Insert, RowsOfOneTableKeepTheirOrderWithAnythingBetween) {
  const Outcome outcome = run([](const Message&, Context& context) {
    context.insert("effects", {"key", "note"}, "a", 1);
    context.insert("effects", {"key"}, "b");
    context.insert("effects", {"key", "note"}, "c", 3);
    context.write("UPDATE effects SET note = coalesce(note, '') || '+'");
    context.insert("effects", {"key", "note"}, "d", 4);
    context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", "e", 5);
    context.insert("effects", {"key", "note"}, "f", 6);
    EXPECT_EQ(context.sql("SELECT count(*) FROM effects")[0][0].as<int>(), 6);
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(effects(), "a=1+ b=+ c=3+ d=4 e=5 f=6");
}

TEST_F(Insert, NamesAreQuotedAndMayHaveASchema) {
  database.run(
      R"(CREATE SCHEMA "odd ""s"; CREATE TABLE "odd ""s"."t-(1) values" ("a,""b" int, "Select" text);)"
      R"(GRANT USAGE ON SCHEMA "odd ""s" TO hapax_worker;)"
      R"(GRANT INSERT ON "odd ""s"."t-(1) values" TO hapax_worker)");
  count_statements(R"("odd ""s"."t-(1) values")");
  const Outcome outcome = run([](const Message&, Context& context) {
    for (int i = 0; i < 3; ++i) context.insert("odd \"s.t-(1) values", {"a,\"b", "Select"}, i, "x");
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(database.value(R"(SELECT sum("a,""b"), min("Select") FROM "odd ""s"."t-(1) values")"),
            "3|x");
  EXPECT_EQ(statements(), "t-(1) values 1");
}

constexpr const char* kTyped =
    "CREATE TYPE mood AS ENUM ('glad', 'it''s \"so\"');"
    "CREATE DOMAIN positive AS int CHECK (value > 0);"
    "CREATE TABLE typed (t text, i bigint, d double precision, b boolean, y bytea, j json, "
    "jb jsonb, at timestamptz, m mood, p positive, n numeric(20, 4), o text, c char(3), bt bit(4), "
    "a text[]);"
    "GRANT INSERT ON typed TO hapax_worker";

void insert_typed(Context& context, bool with_array) {
  const nlohmann::json json = {{"a", {1, "it's", nullptr}}, {"b", "\\\""}};
  const std::string text = "it's \\ \"quoted\" {$1} , \n\t \u00e9 \U0001F600 E'x' --";
  if (with_array) {
    context.insert("typed", {"t", "a"}, text, "{x,NULL,\"y \\\"\"}");
    return;
  }
  context.insert("typed", {"t", "i", "d", "b", "y", "j", "jb", "at", "m", "p", "n", "o", "c", "bt"},
                 text, std::numeric_limits<std::int64_t>::min(), 0.1, true,
                 Parameter::bytes("\0\x01\xff\\'"s), json, json, "2026-11-21 15:55:00.25+01",
                 "it's \"so\"", 7, nlohmann::json(12.5), std::optional<int>(), "EUR", "1010");
}

// Types that unnest cannot give back as they were: their rows go out one by one.
TEST_F(Insert, AValueOfATypeWithoutAnArrayFormIsTheSameAmongOthers) {
  database.run(
      "CREATE TYPE money_of AS (amount int, currency text);"
      "CREATE DOMAIN places AS text[];"
      "CREATE TABLE composed (n int, m money_of, b box, p places);"
      "GRANT INSERT ON composed TO hapax_worker");
  for (const char* const column : {"m", "b", "p"}) {
    const std::string value = *column == 'm'   ? "(12,EUR)"
                              : *column == 'b' ? "(3,4),(1,2)"
                                               : "{a,b}";
    const Outcome outcome = run([&](const Message&, Context& context) {
      for (int i = 0; i < 3; ++i) context.insert("composed", {"n", column}, i, value);
    });
    EXPECT_EQ(outcome.result, Result::completed) << column << ": " << outcome.detail;
  }
  EXPECT_EQ(
      database.value("SELECT string_agg(DISTINCT concat_ws(' ', m, b, p), '; ') FROM composed"),
      "(12,EUR); (3,4),(1,2); {a,b}");
}

// One row goes out as VALUES, many go through arrays of PostgreSQL's own types.
TEST_F(Insert, AValueOfAnyTypeIsTheSameAloneAndAmongOthers) {
  database.run(kTyped);
  for (const bool with_array : {false, true}) {
    database.run("TRUNCATE typed");
    for (const int rows : {1, 4}) {
      const Outcome outcome = run([&](const Message&, Context& context) {
        for (int i = 0; i < rows; ++i) insert_typed(context, with_array);
      });
      EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
    }
    EXPECT_EQ(database.value("SELECT count(*), count(DISTINCT typed::text) FROM typed"), "5|1");
  }
  EXPECT_EQ(database.value("SELECT a[3] FROM typed LIMIT 1"), "y \"");
}

TEST_F(Insert, RandomTextArrivesAsItWas) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  static constexpr const char* kPieces[] = {"'",      "\"",         "\\",   "{",  "}",  ",",
                                            "\u00e9", "\U0001F600", "NULL", "$1", "\n", "E'",
                                            "a",      " ",          ";",    "\\x"};
  std::vector<std::string> sent(60);
  for (std::string& text : sent)
    for (std::size_t i = random() % 8; i > 0; --i) text += kPieces[random() % std::size(kPieces)];
  const Outcome outcome = run([&](const Message&, Context& context) {
    context.sql("SET LOCAL standard_conforming_strings TO off");
    for (const std::string& text : sent)
      context.insert("effects", {"note", "key"}, text,
                     text.empty() ? std::nullopt : std::optional(text));
    const Rows rows = context.sql("SELECT note, key FROM effects ORDER BY id");
    ASSERT_EQ(rows.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(rows[i][0].text(), sent[i]);
      EXPECT_EQ(rows[i][1].is_null(), sent[i].empty());
    }
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
}

TEST_F(Insert, AValueThatCannotBeTextIsAnAttemptThoughItsErrorIsSwallowed) {
  const Outcome outcome = run([](const Message&, Context& context) {
    for (const std::string& note : {"1"s, "2"s, "\0"s, "4"s}) {
      try {
        context.insert("effects", {"key", "note"}, "k" + std::to_string(note[0]), note);
      } catch (const SqlError& error) {
        EXPECT_EQ(error.sqlstate(), "22021");
      }
    }
  });
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.sqlstate, "22021") << outcome.detail;
  EXPECT_EQ(effects(), "");
}

TEST_F(Insert, AMissingTableOrColumnHaltsTheRouteAndIsNamed) {
  const auto failed = [&](std::int64_t offset, const Body& body) {
    return process({.key = "bad" + std::to_string(offset), .offset = offset}, body);
  };
  const Outcome table =
      failed(40, [](const Message&, Context& context) { context.insert("no.such", {"a"}, 1); });
  EXPECT_EQ(table.result, Result::halt_route);
  EXPECT_EQ(table.sqlstate, "42P01");
  EXPECT_THAT(table.detail, testing::HasSubstr("\"no.such\" does not exist"));
  const Outcome column = failed(41, [](const Message&, Context& context) {
    context.insert("effects", {"key", "amuont"}, 1, 2);
  });
  EXPECT_EQ(column.result, Result::halt_route);
  EXPECT_EQ(column.sqlstate, "42703");
  EXPECT_THAT(column.detail, testing::HasSubstr("\"amuont\" of relation \"effects\""));
  EXPECT_EQ(count("hapax.attempts"), 0);
}

}  // namespace
}  // namespace hapax::flow
