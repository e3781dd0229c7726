// What `hapax check` finds that would keep a worker from its promise, with real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "sandbox/temporary_folder.hpp"
#include "store/fault.hpp"
#include "store/operator/migrate.hpp"
#include "support/command.hpp"
#include "support/pooler.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

class CheckThroughAPooler : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = Pooler::missing())
      GTEST_SKIP() << "NOT TESTED through PgBouncer: " << *missing;
  }

  Said check(const std::string& mode) {
    Site site = Site::on_mock_cluster(1);
    const std::string& database = site.database().name();
    const Pooler pooler(database, test::postgres().port(), mode);
    const store::ConnectOptions through =
        test::through_port(site.database().worker(), pooler.port());
    await(through);
    std::ofstream(config()) << site.options("w", {{"postgres", {{"url", through.url}}}}).config;
    return hapax({"check"}, config());
  }

 private:
  // PgBouncer does not report when it listens, so this tries to connect.
  static void await(const store::ConnectOptions& options) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);;) {
      try {
        const store::Session session(options);
        return;
      } catch (const store::DatabaseError&) {
        if (std::chrono::steady_clock::now() >= until) throw;
        std::this_thread::yield();
      }
    }
  }

  std::filesystem::path config() const { return folder_.path() / "worker.json"; }
  sandbox::TemporaryFolder folder_{"check"};
};

TEST_F(CheckThroughAPooler, RefusesOneThatSharesSessions) {
  const Said said = check("transaction");
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("FAIL  pooler: two connections share a server process"));
}

TEST_F(CheckThroughAPooler, TakesSessionMode) {
  EXPECT_THAT(check("session").text, HasSubstr("ok    pooler: cannot tell"));
}

TEST(CheckTables, NamesATableAndARightThatAreMissing) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("CREATE TABLE booked (id int); GRANT INSERT (id) ON booked TO hapax_worker");
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  const auto check = [&](const std::string& tables) {
    nlohmann::json config = site.options("w").config;
    config["routes"][0]["tables"] = nlohmann::json::parse(tables);
    std::ofstream(file) << config;
    return hapax({"check"}, file);
  };
  const Said wrong = check(R"({"booked": ["INSERT", "DELETE"], "bookings": ["SELECT"]})");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.text, HasSubstr("FAIL  table bookings: there is none of this name"));
  EXPECT_THAT(wrong.text, HasSubstr("FAIL  table booked: this role has no DELETE on it → GRANT"));
  EXPECT_THAT(wrong.text, testing::Not(HasSubstr("no INSERT")));
  EXPECT_THAT(check(R"({"booked": ["INSERT"]})").text,
              HasSubstr("ok    routes[].tables: all there"));
}

TEST(CheckSchema, WarnsOfAnOlderOneThatCommandsRefuse) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("DELETE FROM hapax.schema_migrations WHERE number = " +
                      std::to_string(store::kSchema));
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w").config;
  const std::string older = hapax({"check"}, file).text;
  EXPECT_THAT(older, HasSubstr("warn  schema: an older version"));
  EXPECT_THAT(older, HasSubstr("→ run `hapax migrate up`"));
  site.database().run("DELETE FROM hapax.schema_migrations");
  EXPECT_THAT(hapax({"check"}, file).text,
              HasSubstr("FAIL  schema: the schema hapax is not there → run `hapax migrate up`\n"));
}

TEST(CheckVariables, NamesThoseWhoseDefaultCounts) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  nlohmann::json config = site.options("w").config;
  config["kafka"]["client.id"] = "$${NO:-x}${HAPAX_TEST_UNSET:-a}${HAPAX_TEST_SET:-b}";
  setenv("HAPAX_TEST_SET", "c", 1);
  std::ofstream(file) << "// ${COMMENT:-d}\n" << config;
  EXPECT_THAT(hapax({"check"}, file).text,
              HasSubstr("ok    variables: unset or empty, so the file's default counts: "
                        "HAPAX_TEST_UNSET\n"));
}

TEST(CheckRights, NamesTheFileThatAnInstalledHapaxHas) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("REVOKE INSERT ON hapax.dead_letters FROM hapax_worker");
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w").config;
  EXPECT_THAT(hapax({"check"}, file).text,
              testing::ContainsRegex("FAIL  rights: missing: INSERT on hapax.dead_letters → run "
                                     "/.*/share/hapax/roles.sql with this role"));
}

// What bootstrap.servers name may answer although the brokers' own addresses do not.
TEST(CheckBrokers, NamesAnAdvertisedAddressThatDoesNotAnswer) {
  Site site = Site::on_mock_cluster(1);
  kafka::MockCluster cluster(2);
  cluster.create_topic(site.topic(), 1);
  const std::string both = cluster.bootstrap();
  const auto comma = both.find(',');
  const std::string first = both.substr(0, comma), second = both.substr(comma + 1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w", {{"kafka", {{"bootstrap.servers", first}}}}).config;
  EXPECT_THAT(hapax({"check"}, file).text, HasSubstr("ok    brokers: 2, all answer"));
  cluster.stop_broker(2);
  const Said wrong = hapax({"check"}, file);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.text, HasSubstr("ok    Kafka: cluster"));
  EXPECT_THAT(wrong.text, HasSubstr("FAIL  broker 2: it advertises " + second +
                                    ", and does not answer there: Connect"));
  EXPECT_THAT(wrong.text, HasSubstr("→ correct advertised.listeners"));
}

TEST(CheckKeys, TellThatCoordinatesNameAMessageOfOneLogOnly) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  nlohmann::json config = site.options("w").config;
  constexpr const char* kTold = "A mirror of the topic, or the topic made again, is another log";
  std::ofstream(file) << config;
  EXPECT_THAT(hapax({"check"}, file).text, testing::Not(HasSubstr(kTold)));
  config["routes"][0]["missing_key"] = "coordinates";
  std::ofstream(file) << config;
  EXPECT_THAT(hapax({"check"}, file).text, HasSubstr(kTold));
}

TEST(CheckKeys, WarnThatRecordKeysMayHoldASchemasId) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  const auto check = [&](const nlohmann::json& route) {
    nlohmann::json config = site.options("w").config;
    config["routes"][0].update(route);
    std::ofstream(file) << config;
    return hapax({"check"}, file).text;
  };
  const nlohmann::json framed = {{"format", "json"}};
  const auto told = HasSubstr("they hold a schema's id");
  EXPECT_THAT(check({{"key", "record_key"}, {"payload", framed}}), told);
  EXPECT_THAT(check({{"tenant", "record_key"}, {"payload", framed}}), told);
  EXPECT_THAT(check({{"key", "record_key"}}), testing::Not(told));
  EXPECT_THAT(check({{"payload", framed}}), testing::Not(told));
}

TEST(CheckIsolation, WarnsOfALevelThatHapaxOverrules) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w").config;
  const auto told = HasSubstr("default_transaction_isolation is serializable for hapax_worker");
  EXPECT_THAT(hapax({"check"}, file).text, testing::Not(told));
  site.database().run("ALTER DATABASE " + site.database().name() +
                      " SET default_transaction_isolation = 'serializable'");
  EXPECT_THAT(hapax({"check"}, file).text, told);
}

TEST(CheckBatch, IsAdvisedIfTheHandlerMayOnlyInsert) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  const auto check = [&](const nlohmann::json& route) {
    nlohmann::json config = site.options("w").config;
    config["routes"][0].update(route);
    std::ofstream(file) << config;
    return hapax({"check"}, file).text;
  };
  constexpr const char* kAdvised =
      "declares only INSERT and SELECT, so it is about ten times as fast with \"batch\": 100";
  EXPECT_THAT(check({{"batch", 1}}),
              HasSubstr("If the handler only inserts, it is about ten times"));
  EXPECT_THAT(check({{"tables", {{"booked", {"INSERT"}}}}, {"batch", 1}}), HasSubstr(kAdvised));
  const auto unadvised = testing::Not(HasSubstr("ten times"));
  EXPECT_THAT(check({{"tables", {{"booked", {"INSERT", "UPDATE"}}}}, {"batch", 1}}), unadvised);
  EXPECT_THAT(check({{"batch", 100}}), unadvised);
}

TEST(CheckBatch, IsWarnedOfIfAConstraintWaitsForTheCommit) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  const auto check = [&](int batch) {
    nlohmann::json config = site.options("w").config;
    config["routes"][0]["batch"] = batch;
    std::ofstream(file) << config;
    return hapax({"check"}, file).text;
  };
  const auto told = HasSubstr("warn  batches: ");
  EXPECT_THAT(check(2), testing::Not(told)) << "hapax's own do not count";
  site.database().run("CREATE TABLE slots (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
  EXPECT_THAT(check(2), told);
  EXPECT_THAT(check(1), testing::Not(told));
}

TEST(CheckConnections, CountTheOneOfCallsToTheOutside) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  nlohmann::json config = site.options("w").config;
  std::ofstream(file) << config;
  EXPECT_THAT(hapax({"check"}, file).text, HasSubstr("(lanes + 6)"));
  config["routes"][0]["handler"] = "calling";
  config["routes"][0]["outside"] = {{"repeat", "never"}};
  std::ofstream(file) << config;
  EXPECT_THAT(hapax({"check"}, file).text, HasSubstr("(lanes + 7)"));
}

TEST(CheckAtStart, WarnsOfWhatWouldBreakThePromise) {
  Site site = Site::on_mock_cluster(1);
  site.database().run(
      "ALTER TABLE hapax.idempotency_keys DISABLE TRIGGER seal; "
      "DROP TRIGGER forgotten ON hapax.idempotency_keys; "
      "ALTER TABLE hapax.checkpoints DISABLE TRIGGER epochs");
  const auto worker = site.worker("w", {{"postgres", {{"url", site.database().owner().url}}}});
  worker->await("check_failed", {{"check", "role is no superuser"}});
  worker->await("check_failed", {{"check", "seal"}});
  expect_leaves(*worker);
  const auto sound = site.worker("sound");
  for (const char* check : {"seal", "trigger forgotten", "trigger epochs"})
    sound->await("check_failed", {{"check", check}});
  EXPECT_EQ(sound->count("check_failed", {{"check", "role is no superuser"}}), 0U);
  expect_leaves(*sound);
}

}  // namespace
}  // namespace hapax::support
