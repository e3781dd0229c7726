// What the test kit takes for the same effect: moments, uuids and newly drawn numbers may differ
// between two deliveries, and nothing else.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>

#include "kit_case.hpp"
#include "sandbox/temporary_folder.hpp"

namespace kit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Compared : public ::testing::Test {
 protected:
  // The report of a handler that runs these statements, each with the message's id as $1, on these
  // tables. `arranged`: SQL that runs before.
  Report examined(const std::string& tables, const Body& body, const std::string& arranged = "",
                  const std::vector<std::string>& ignored = {}) {
    const auto path = folder_.path() / "schema.sql";
    std::ofstream(path) << tables;
    Options options = ledger();
    options.schema = {path};
    options.ignored_columns = ignored;
    Harness harness(factory(body), options);
    if (!arranged.empty()) harness.sql(arranged);
    return harness.examine(payment());
  }

  Report examined(const std::string& tables, const std::string& statement,
                  const std::string& arranged = "", const std::vector<std::string>& ignored = {}) {
    return examined(tables, running(statement), arranged, ignored);
  }

  static Body running(const std::string& statement) {
    return [statement](const Message& message, Context& context) {
      context.sql(statement, *message.header("id"));
    };
  }

  hapax::sandbox::TemporaryFolder folder_{"kit-compared"};
};

constexpr const char* kPayments = "CREATE TABLE payments (id text, amount int);";
constexpr const char* kByChance = "INSERT INTO payments VALUES ($1, -(random() * 1e9)::int)";

TEST_F(Compared, MoneyByChanceIsAProblemThatNamesTheColumnAndBothValues) {
  const Report report = examined(kPayments, kByChance);
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(report.text(), AllOf(HasSubstr("public.payments.amount is -"), HasSubstr(", not -"),
                                   HasSubstr("Options::ignored_columns")));
}

TEST_F(Compared, AColumnThatTheTestNamesMayDiffer) {
  const Report report = examined(kPayments, kByChance, "", {"public.payments.amount"});
  EXPECT_TRUE(report.passed()) << report;
}

constexpr const char* kAccounts =
    "CREATE TABLE accounts (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, balance int);"
    "CREATE TABLE debits (account int REFERENCES accounts, id text);";
constexpr const char* kTwoAccounts = "INSERT INTO accounts (balance) VALUES (100), (100)";

// A run that another one follows must not change which account pays.
Body debiting(const std::string& statement) {
  return [statement, run = std::make_shared<std::atomic<int>>(0)](const Message& message,
                                                                  Context& context) {
    context.sql(statement, *message.header("id"), *run == 0 ? 1 : 2);
    ++*run;
  };
}

TEST_F(Compared, AnotherAccountIsAnotherEffect) {
  const Report report = examined(
      kAccounts, debiting("UPDATE accounts SET balance = balance - length($1) WHERE id = $2"),
      kTwoAccounts);
  EXPECT_THAT(report.text(), HasSubstr("public.accounts has"));
}

TEST_F(Compared, AReferenceToAnotherRowThatWasThereIsAnotherEffect) {
  const Report report = examined(
      kAccounts, debiting("INSERT INTO debits (id, account) VALUES ($1, $2)"), kTwoAccounts);
  EXPECT_THAT(report.text(), HasSubstr("public.debits has"));
}

// Each run draws two numbers; the reference goes to the row of "from" or to that of "to".
Body linking(bool by_turns) {
  return [by_turns, run = std::make_shared<std::atomic<int>>(0)](const Message& message,
                                                                 Context& context) {
    const bool swapped = by_turns && (*run)++ > 0;
    context.sql(
        "WITH drawn AS (INSERT INTO entries (side) VALUES ('from'), ('to') RETURNING id, side) "
        "INSERT INTO notes SELECT id, $1 FROM drawn WHERE side = $2",
        *message.header("id"), swapped ? "to" : "from");
  };
}

TEST_F(Compared, AReferenceToAnotherNewRowIsAnotherEffect) {
  for (const std::string type :
       {"int GENERATED ALWAYS AS IDENTITY", "uuid DEFAULT gen_random_uuid()"}) {
    const std::string tables = "CREATE TABLE entries (id " + type +
                               " PRIMARY KEY, side text); CREATE TABLE notes (entry " +
                               type.substr(0, type.find(' ')) + " REFERENCES entries, id text);";
    const Report same = examined(tables, linking(false));
    EXPECT_TRUE(same.passed()) << type << same;
    EXPECT_THAT(examined(tables, linking(true)).text(), HasSubstr("public.notes has")) << type;
  }
}

TEST_F(Compared, AColumnThatIsCalledAsAnAliasHidesNoOther) {
  const Report report = examined(
      "CREATE TABLE payments (t jsonb, amount int);",
      "INSERT INTO payments VALUES (json_build_object('id', $1::text), (random() * 1e9)::int)");
  EXPECT_FALSE(report.passed());
}

TEST_F(Compared, NoValueAndTheWordNullAreTwo) {
  EXPECT_FALSE(examined("CREATE TABLE words (id text, word text);",
                        [run = std::make_shared<std::atomic<int>>(0)](const Message& message,
                                                                      Context& context) {
                          context.sql("INSERT INTO words VALUES ($1, nullif($2, ''))",
                                      *message.header("id"), (*run)++ == 0 ? "NULL" : "");
                        })
                   .passed());
}

// The amount comes to be a number that another table's sequence has drawn long ago.
TEST_F(Compared, AWrongNumberInTheResultIsNotDrawnBecauseItIsAnOldOne) {
  const Report report = examined(
      kAccounts,
      [run = std::make_shared<std::atomic<int>>(0)](const Message& message, Context& context) {
        context.sql("INSERT INTO accounts (balance) VALUES (length($1))", *message.header("id"));
        context.result({{"balance", (*run)++ == 0 ? 1 : 2}});
      },
      kTwoAccounts);
  EXPECT_THAT(report.text(), HasSubstr("hapax.idempotency_keys has"));
}

TEST_F(Compared, TwoNewNumbersInTheResultMustStayTwo) {
  const Report report = examined(kAccounts, [run = std::make_shared<std::atomic<int>>(0)](
                                                const Message& message, Context& context) {
    const auto rows =
        context.sql("INSERT INTO accounts (balance) VALUES (length($1)), (length($1)) RETURNING id",
                    *message.header("id"));
    const int first = rows[0][0].as<int>();
    context.result({{"from", first}, {"to", (*run)++ == 0 ? first + 1 : first}});
  });
  EXPECT_THAT(report.text(), HasSubstr("hapax.idempotency_keys has"));
}

TEST_F(Compared, MomentsInWholeSecondsAreNotCompared) {
  const Report report = examined(
      "CREATE TABLE payments (id text, at timestamptz(0) DEFAULT clock_timestamp(), "
      "slow timestamptz(0));",
      "INSERT INTO payments (id, slow) VALUES ($1, clock_timestamp() + random() * '1 "
      "s'::interval)");
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_THAT(report.varying, ElementsAre("public.payments.at", "public.payments.slow"));
}

TEST_F(Compared, WhetherThereIsAMomentIsCompared) {
  const Report report = examined(
      "CREATE TABLE payments (id text, at timestamptz);",
      [run = std::make_shared<std::atomic<int>>(0)](const Message& message, Context& context) {
        context.sql("INSERT INTO payments VALUES ($1, CASE WHEN $2 = 0 THEN now() END)",
                    *message.header("id"), (*run)++);
      });
  EXPECT_FALSE(report.passed());
}

TEST_F(Compared, ANumberInsideAnExpressionIsDrawn) {
  const Report report = examined(
      "CREATE SEQUENCE numbers;"
      "CREATE TABLE payments (id text, number text DEFAULT 'S-' || nextval('numbers'), "
      "late text DEFAULT nextval('num' || 'bers'));",
      "INSERT INTO payments (id) VALUES ($1), ($1)");
  EXPECT_TRUE(report.passed()) << report;
}

TEST_F(Compared, TheIdentityOfAPartitionedTableIsDrawn) {
  const Report report = examined(
      "CREATE SEQUENCE numbers;"
      "CREATE TABLE entries (number int DEFAULT nextval('numbers'), side text, "
      "PRIMARY KEY (number, side)) PARTITION BY LIST (side);"
      "CREATE TABLE entries_from PARTITION OF entries FOR VALUES IN ('from');"
      "CREATE TABLE entries_to PARTITION OF entries FOR VALUES IN ('to');"
      "CREATE TABLE notes (number int, side text, id text, "
      "FOREIGN KEY (number, side) REFERENCES entries) PARTITION BY LIST (id);"
      "CREATE TABLE notes_all PARTITION OF notes DEFAULT;"
      "CREATE TABLE own (number int GENERATED ALWAYS AS IDENTITY, id text) PARTITION BY LIST (id);"
      "CREATE TABLE own_all PARTITION OF own DEFAULT;",
      [](const Message& message, Context& context) {
        context.sql(
            "WITH drawn AS (INSERT INTO entries (side) VALUES ('from'), ('to') RETURNING *) "
            "INSERT INTO notes SELECT number, side, $1 FROM drawn",
            *message.header("id"));
        // An older server has no identity here: it takes the number from the parent's sequence.
        context.sql("INSERT INTO own (id) VALUES ($1)", *message.header("id"));
      });
  EXPECT_TRUE(report.passed()) << report;
}

TEST_F(Compared, TablesMayBeMadeInTransactionsOfTheirOwn) {
  const Report report = examined(
      "BEGIN; CREATE TABLE payments (id text); COMMIT;"
      "BEGIN; CREATE TABLE notes (id text); COMMIT;",
      "INSERT INTO payments VALUES ($1)");
  EXPECT_TRUE(report.passed()) << report;
}

// The kit's own writes, which put the tables back, are no effect.
TEST_F(Compared, TriggersThatAlwaysFireSeeTheHandlersWritesOnly) {
  const Report report = examined(
      "CREATE TABLE audit (what text, id text); CREATE TABLE payments (id text);"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO audit VALUES (TG_OP, NEW.id); RETURN NULL; END $$;"
      "CREATE TRIGGER note AFTER INSERT OR DELETE ON payments FOR EACH ROW "
      "EXECUTE FUNCTION note(); ALTER TABLE payments ENABLE ALWAYS TRIGGER note;"
      "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'it is append-only'; END $$;"
      "CREATE TRIGGER keep BEFORE DELETE ON payments EXECUTE FUNCTION keep();"
      "ALTER TABLE payments ENABLE REPLICA TRIGGER keep;",
      "INSERT INTO payments VALUES ($1)");
  EXPECT_TRUE(report.passed()) << report;
}

TEST_F(Compared, KeysOfCoordinatesAreNotSentAgainByTheProducer) {
  Options options = ledger();
  options.route["key"] = "coordinates";
  Harness harness(factory(book), options);
  const Report report = harness.examine(payment());
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_THAT(report.text(), ::testing::Not(HasSubstr("sent again by the producer")));
}

}  // namespace
}  // namespace kit
