// The sources of the test kit's route, and its message if there is none.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "kit_case.hpp"
#include "sandbox/temporary_folder.hpp"

namespace kit {
namespace {

using ::testing::HasSubstr;

class KitOptions : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << text;
    return path;
  }

  // The message with which the harness refuses to begin.
  static std::string refusal(const Options& options) {
    try {
      Harness harness(factory(book), options);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  }

  hapax::sandbox::TemporaryFolder folder_{"kit-options"};
};

TEST_F(KitOptions, TheWorkersFileIsReadAsItIsWithoutItsServers) {
  const std::string path = file("worker.json", R"({
    "kafka": {"bootstrap.servers": "${NOT_SET_WHERE_TESTS_RUN}", "group.id": "x"},
    "postgres": {"url": "${NEITHER_IS_THIS}", "statement_timeout": "7s"},
    "routes": [
      {"topic": "a", "handler": "other", "key": {"header": "id"}},
      // A comment.
      {"topic": "b", "handler": "booker", "key": {"json": "/id"}, "options": {"rate": "${RATE}"}}
    ]})");
  Options options = ledger();
  options.route = nullptr;
  options.config = path;
  options.environment = {{"RATE", "3"}};
  hapax::HandlerFactory made = factory(book);
  hapax::Setup seen;
  struct Starting final : hapax::Handler {
    explicit Starting(hapax::Setup& setup) : seen(setup) {}
    void on_start(const hapax::Setup& setup) override { seen = setup; }
    void handle(const Message& message, Context& context) override {
      context.sql("INSERT INTO payments VALUES ($1, 1)", message.json().at("id"));
      timeout = context.sql("SHOW statement_timeout")[0][0].text();
      context.result(timeout);
    }
    hapax::Setup& seen;
    std::string timeout;
  };
  made.make = [&seen] { return std::make_unique<Starting>(seen); };
  Harness harness(made, options);
  EXPECT_EQ(seen.topic, "b");
  EXPECT_EQ(seen.options(), (nlohmann::json{{"rate", "3"}}));
  harness.deliver({.payload = R"({"id": "p7"})"});
  EXPECT_EQ(harness.sql("SELECT key || ' ' || (result #>> '{}') FROM hapax.idempotency_keys")[0][0]
                .text(),
            "p7 7s");
}

// Else a test would not show that the declaration lacks a right.
TEST_F(KitOptions, TheWorkersRoleHasOnlyTheRightsThatTheRouteDeclares) {
  Options options = ledger();
  options.route["tables"] = nlohmann::json::parse(
      R"({"payments": ["INSERT"], "entries": ["INSERT", "SELECT"], "notes": ["INSERT"]})");
  Harness right(factory(book), options);
  EXPECT_EQ(right.deliver(payment()).result, Result::completed);
  options.route["tables"]["entries"] = {"INSERT"};
  Harness wrong(factory(book), options);
  const Outcome refused = wrong.deliver(payment());
  EXPECT_EQ(refused.reason, "statement_refused");
  EXPECT_THAT(refused.detail,
              AllOf(HasSubstr("permission denied for table entries. In this test"),
                    HasSubstr("routes[].tables, on entries INSERT. A statement that reads")));
  options.route["tables"].erase("entries");
  Harness without(factory(book), options);
  EXPECT_THAT(without.deliver(payment()).detail, HasSubstr("routes[].tables, on entries none. "));
}

TEST_F(KitOptions, ATableThatTheRouteDeclaresAndTheSchemaDoesNotMakeIsNamed) {
  Options options = ledger();
  options.route["tables"] = {{"bookings", {"INSERT"}}, {"payments", {"INSERT"}}};
  EXPECT_EQ(
      refusal(options),
      "Options::route, tables names bookings, which no file of Options::schema makes: correct "
      "one of them");
  const std::string path = file("worker.json", R"({"routes": [
      {"topic": "a", "handler": "other", "key": {"header": "id"}},
      {"topic": "b", "handler": "booker", "key": {"header": "id"},
       "tables": {"bookings": ["INSERT"], "ledger.cards": ["SELECT"]}}]})");
  EXPECT_EQ(refusal({.config = path, .schema = options.schema}),
            path +
                ", routes[1].tables names bookings, ledger.cards, which no file of "
                "Options::schema makes: correct one of them");
}

// Else a test would pass with rights that the workers do not have.
TEST_F(KitOptions, AFileThatGrantsTheWorkersLessThanTheRouteDeclaresIsRefused) {
  Options options = ledger();
  options.route["tables"] = {{"entries", {"INSERT", "SELECT"}}, {"payments", {"INSERT"}}};
  const auto with = [&](const std::string& grants) {
    options.worker_role = file("role.sql", "CREATE ROLE w LOGIN; CREATE ROLE reader;" + grants);
    return refusal(options);
  };
  EXPECT_THAT(with("GRANT SELECT ON payments TO reader; GRANT INSERT ON entries, payments TO w"),
              HasSubstr("role.sql grants no role SELECT on entries, which Options::route, tables "
                        "declares: correct one of them"));
  EXPECT_EQ(with("GRANT INSERT ON payments TO w; GRANT ALL ON entries TO w"), "none");
  // As psql runs it, and it is taken back all the same.
  EXPECT_EQ(with("BEGIN; GRANT INSERT ON payments TO w; GRANT ALL ON entries TO w; COMMIT"),
            "none");
  EXPECT_THAT(with("COMMIT; GRANT INSERT ON bookings TO w"), HasSubstr("bookings"));
  EXPECT_EQ(with("COMMIT; GRANT INSERT ON payments TO w; GRANT ALL ON entries TO w"), "none");
  EXPECT_THAT(with("GRANT INSERT ON bookings TO w"),
              AllOf(HasSubstr("role.sql fails: "), HasSubstr("bookings")));
}

TEST_F(KitOptions, AFileThatIsNotInTheFolderOfTheTestIsToldWithThatFolder) {
  const std::string here = std::filesystem::current_path();
  EXPECT_THAT(refusal({.config = "no-worker.json"}),
              HasSubstr("cannot read the configuration no-worker.json: No such file or directory. "
                        "The test runs in " +
                        here + ": start it in the folder of that file"));
  Options options = ledger();
  options.schema = {"no-schema.sql"};
  EXPECT_THAT(refusal(options), HasSubstr("no-schema.sql. The test runs in " + here));
}

TEST_F(KitOptions, WhatOnStartThrowsNamesTheHandlerAsAWorkerDoes) {
  hapax::HandlerFactory made = factory(book);
  struct Failing final : hapax::Handler {
    void on_start(const hapax::Setup& setup) override { setup.options().at("limit"); }
    void handle(const Message&, Context&) override {}
  };
  made.make = [] { return std::make_unique<Failing>(); };
  EXPECT_THAT([&] { Harness(made, ledger()); },
              ::testing::ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("on_start of handler \"booker\", for topic \"test\", threw: "),
                        HasSubstr("key 'limit' not found; fix that, or routes[].options"))));
}

TEST_F(KitOptions, ARouteThatIsNotThereIsAnsweredWithThoseThatAre) {
  Options options{.config = file("worker.json", R"({"routes": [
      {"topic": "a", "handler": "other", "key": {"header": "id"}},
      {"topic": "b", "handler": "booker", "key": {"header": "id"}},
      {"topic": "c", "handler": "booker", "key": {"header": "id"}}]})")};
  EXPECT_EQ(refusal(options),
            "more than one route for handler \"booker\"; there is: a (handler other), b (handler "
            "booker), c (handler booker). Name the one that is meant in Options::topic.");
  options.topic = "a";
  EXPECT_EQ(refusal(options),
            "no route for handler \"booker\" on topic \"a\"; there is: a (handler other), b "
            "(handler booker), c (handler booker)");
  options.topic = "c";
  EXPECT_EQ(refusal(options), "none");
}

TEST_F(KitOptions, EveryMistakeIsToldAtOnce) {
  EXPECT_THAT(refusal({}), HasSubstr("name the worker's configuration in Options::config"));
  EXPECT_THAT(refusal({.config = "/nowhere/worker.json"}),
              HasSubstr("cannot read the configuration /nowhere/worker.json"));
  EXPECT_THAT(refusal({.route = {{"kee", 1}, {"batch", 0}}}),
              AllOf(HasSubstr("Options::route is wrong"), HasSubstr("routes[0].kee"),
                    HasSubstr("routes[0].batch")));
}

TEST_F(KitOptions, VariablesOfOtherHandlersAndServersNeedNotBeSet) {
  const std::string path = file("others.json", R"({
    "kafka": {"bootstrap.servers": "k:9092", "group.id": "x", "security.protocol": "SASL_SSL",
              "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "${NOT_SET_HERE}"},
    "postgres": {"url": "postgresql://p", "lock_timeout": "${NOT_SET_HERE}"},
    "admin": {"listen": "${NOT_SET_HERE}"},
    "routes": [
      {"topic": "a", "handler": "other", "key": {"header": "id"},
       "options": {"secrets": ["${NOT_SET_HERE}"], "file": "@/run/secrets/not_here"}},
      {"topic": "b", "handler": "booker", "key": {"header": "id"}}]})");
  EXPECT_EQ(refusal({.config = path}), "none");
  EXPECT_THAT(refusal({.config = file("own.json", R"({"routes": [{"topic": "b", "handler": "booker",
      "key": {"header": "id"}, "options": {"secret": "${NOT_SET_HERE}"}}]})")}),
              HasSubstr("NOT_SET_HERE is not set"));
}

TEST_F(KitOptions, AFileThatAWorkerRefusesIsRefused) {
  const auto with = [&](const std::string& section) {
    return refusal({.config = file("wrong.json", R"({"routes": [{"topic": "b", "handler": "booker",
        "key": {"header": "id"}}], )" + section + "}")});
  };
  EXPECT_EQ(with(R"("log": {})"), "none");
  EXPECT_THAT(with(R"("worker": {"lane": 3})"), HasSubstr("worker.lane"));
  EXPECT_THAT(with(R"("wroker": {})"), HasSubstr("wroker"));
  EXPECT_THAT(with(R"("postgres": "x")"), HasSubstr("postgres: found \"x\""));
}

TEST_F(KitOptions, AFileThatIsNoObjectIsTold) {
  EXPECT_THAT(refusal({.config = file("array.json", "[1]")}),
              HasSubstr("array.json is no JSON object"));
  EXPECT_THAT(refusal({.config = file("empty.json", "{}"), .route = {{"key", "record_key"}}}),
              HasSubstr("Options::config and Options::route are both given"));
}

TEST_F(KitOptions, ASchemaThatFailsIsNamed) {
  Options options = ledger();
  options.schema = {"/nowhere/schema.sql"};
  EXPECT_EQ(refusal(options), "cannot read the file /nowhere/schema.sql");
  options.schema = {file("bad.sql", "CREATE TABLE t (n int); CREATE TABEL u ()")};
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("bad.sql fails: "), HasSubstr("TABEL")));
}

TEST_F(KitOptions, AColumnToIgnoreMustBeOfATable) {
  Options options = ledger();
  options.ignored_columns = {"payments.id"};
  Harness harness(factory(book), options);
  EXPECT_THROW(harness.examine(payment()), std::runtime_error);
}

}  // namespace
}  // namespace kit
