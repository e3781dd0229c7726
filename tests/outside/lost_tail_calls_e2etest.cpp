// PostgreSQL loses what it knew of calls: a replica that lagged is promoted, or old files are put
// back. Each of the three declarations then does its part.
#include <gtest/gtest.h>

#include <chrono>

#include "outside/shop.hpp"
#include "support/kafka_admin.hpp"
#include "support/successor.hpp"

namespace hapax::support {
namespace {

constexpr int kKnown = 4;  // calls that what takes over knows of
constexpr int kMade = 10;  // all that were made before

// A shop whose PostgreSQL dies, and what takes over. The tests' server is there again at the end.
struct Inheritance : Shop {
  explicit Inheritance(const nlohmann::json& rules)
      : Shop(rules, rules == kIdempotent), heir(Successor::make(Way::promoted_replica)) {}
  ~Inheritance() {
    keeper.reset();
    if (!test::postgres().running()) test::postgres().start();
  }

  void begin() {
    nlohmann::json both = patch();
    both["route"]["breaker"] = 3;  // what was in doubt is no sign of a broken deploy
    both["postgres"]["url"] =
        "postgresql://hapax_worker@127.0.0.1:" + std::to_string(test::postgres().port()) +
        ",127.0.0.1:" + std::to_string(heir->port()) + "/" + site.database().name();
    keeper = site.worker("w", both);
    for (int i = 0; i < kKnown; ++i) send(i);
    await_charges(kKnown);
    site.await_no_lag();
    heir->part();
  }

  // Kafka's offset covers them by then; what takes over knows nothing of them.
  void make_calls_that_are_lost() {
    for (int i = kKnown; i < kMade; ++i) send(i);
    await_charges(kMade);
    site.await_no_lag();
  }

  void inherit() {
    test::postgres().kill();
    site.database().look_at(heir->stand_by(), site.database().name());
    EXPECT_EQ(value("SELECT count(*) FROM charges"), std::to_string(kKnown)) << "nothing is lost";
    heir->take_over();
  }

  Said resume(const char* decision) {
    return hapax({"resume", site.topic(), "--decision", decision, "--why", "the gateway's page",
                  "--yes", "--url", site.database().owner().url},
                 keeper->config());
  }
  void await_halts(int count) {
    site.await(
        "SELECT count(*) FROM hapax.halts WHERE reason = 'tail_in_doubt' AND ended_at IS NULL",
        std::to_string(count));
  }

  std::unique_ptr<Successor> heir;
  std::unique_ptr<WorkerProcess> keeper;
};

// The new process knows only what Kafka's offset tells.
TEST(LostCalls, AreMadeAgainWithTheirKeyIfTheGatewayKeepsIt) {
  HAPAX_NEEDS_KAFKA();
  Inheritance shop(kIdempotent);
  shop.begin();
  shop.make_calls_that_are_lost();
  shop.keeper->kill();
  shop.inherit();
  shop.keeper->start_again();
  shop.keeper->await("calls_in_doubt");
  shop.send(kMade);
  shop.await_charges(kMade + 1);
  shop.site.await_no_lag();
  shop.expect_exact(kMade + 1);
  EXPECT_EQ(shop.gateway.calls(), kMade + 1 + (kMade - kKnown));
}

TEST(LostCalls, AreAskedAboutFirstIfTheGatewayCanTell) {
  HAPAX_NEEDS_KAFKA();
  Inheritance shop(kQueryable);
  shop.begin();
  shop.make_calls_that_are_lost();
  shop.keeper->kill();
  shop.send(kMade);  // comes while there is no PostgreSQL
  shop.inherit();
  shop.keeper->start_again();
  shop.await_charges(kMade + 1);
  shop.site.await_no_lag();
  shop.expect_exact(kMade + 1);
  EXPECT_EQ(shop.gateway.calls(), kMade + 1);
  EXPECT_EQ(shop.gateway.questions(), kMade + 1 - kKnown);
  shop.send(kMade + 1);
  shop.await_charges(kMade + 2);
  EXPECT_EQ(shop.gateway.questions(), kMade + 1 - kKnown) << "nothing new is in doubt";
}

TEST(LostCalls, OfALivingWorkerAreAskedAboutToo) {
  HAPAX_NEEDS_KAFKA();
  Inheritance shop(kQueryable);
  shop.begin();
  shop.make_calls_that_are_lost();
  shop.inherit();
  shop.keeper->await("calls_in_doubt");
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  shop.expect_exact(kMade);
  EXPECT_EQ(shop.gateway.questions(), kMade - kKnown);
}

TEST(LostCalls, HaltOnceIfTheGatewayCanDoNeitherAndAreListed) {
  HAPAX_NEEDS_KAFKA();
  Inheritance shop(kNever);
  shop.begin();
  shop.make_calls_that_are_lost();
  shop.keeper->kill();
  shop.send(kMade);
  shop.inherit();
  shop.keeper->start_again();
  shop.await_halts(2);
  EXPECT_EQ(shop.gateway.calls(), kMade);
  shop.send(kMade + 1);  // surely never called, as all stands
  shop.send(kMade + 2);
  EXPECT_EQ(shop.resume("skip").code, 1);
  const Said said = shop.resume("as_unknown");
  EXPECT_EQ(said.code, 0) << said.text;
  shop.site.await("SELECT count(*) FROM hapax.dead_letters WHERE reason = 'outcome_unknown'",
                  std::to_string(kMade + 1 - kKnown));
  shop.await_charges(kKnown + 2);
  shop.site.await_no_lag();
  EXPECT_EQ(shop.gateway.calls(), kMade + 2) << "nothing else is called before somebody decides";
  EXPECT_EQ(shop.keeper->count("halted", {{"reason", "breaker"}}), 0U);
  EXPECT_EQ(decide(shop, *shop.keeper, "p5", {"--happened", R"({"charge": "c-p5-1"})"}).code, 0);
  EXPECT_EQ(decide(shop, *shop.keeper, "p10", {"--did-not-happen"}).code, 0);
  shop.await_charges(kKnown + 4);
  EXPECT_EQ(shop.gateway.calls("p5"), 1);
  EXPECT_EQ(shop.gateway.calls("p10"), 1);

  shop.keeper->kill();
  shop.keeper->start_again();
  shop.send(kMade + 3);
  shop.await_charges(kKnown + 5);
  shop.await_halts(0);
}

TEST(LostCalls, ThatNeverHappenedAreMadeOnceAnOperatorHasLooked) {
  HAPAX_NEEDS_KAFKA();
  Inheritance shop(kNever);
  shop.begin();
  shop.keeper->kill();
  for (int i = kKnown; i < kMade; ++i) shop.send(i);
  shop.inherit();
  shop.keeper->start_again();
  shop.await_halts(2);
  EXPECT_EQ(shop.gateway.calls(), kKnown);
  const Said said = shop.resume("call");
  EXPECT_EQ(said.code, 0) << said.text;
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  shop.expect_exact(kMade);
  EXPECT_EQ(shop.gateway.calls(), kMade);
}

TEST(LostCalls, ThereAreNoneAfterACrashOfTheSameServer) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < kKnown; ++i) shop.send(i);
  shop.await_charges(kKnown);
  shop.site.await_no_lag();
  test::postgres().kill();
  for (int i = kKnown; i < kMade; ++i) shop.send(i);
  test::postgres().start();
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  shop.expect_exact(kMade);
  EXPECT_EQ(shop.gateway.calls(), kMade);
  EXPECT_EQ(worker->count("halted") + worker->count("calls_in_doubt"), 0U) << worker->output();
}

// A copy's log is ahead of the original's: the position proves nothing.
TEST(LostCalls, OfADatabaseThatADumpPutBackHalt) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < kKnown; ++i) shop.send(i);
  shop.await_charges(kKnown);
  shop.site.await_no_lag();
  expect_leaves(*worker);
  const auto copy = shop.site.database().copy();
  worker->start_again();
  for (int i = kKnown; i < kMade; ++i) shop.send(i);
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  expect_leaves(*worker);

  nlohmann::json on_copy = shop.patch();
  on_copy["postgres"]["url"] = copy->worker().url;
  const auto heir = shop.site.worker("x", on_copy);
  const auto resume = [&](const char* decision) {
    const Said said = hapax({"resume", shop.site.topic(), "--decision", decision, "--why", "a dump",
                             "--yes", "--url", copy->owner().url},
                            heir->config());
    EXPECT_EQ(said.code, 0) << said.text;
  };
  copy->wait_until("SELECT count(*) FROM hapax.halts WHERE reason = 'store_copied'", "2");
  resume("moved");
  copy->wait_until("SELECT count(*) FROM hapax.halts WHERE reason = 'tail_in_doubt'", "2");
  resume("as_unknown");
  copy->wait_until("SELECT count(*) FROM hapax.dead_letters WHERE reason = 'outcome_unknown'",
                   std::to_string(kMade - kKnown));
  EXPECT_EQ(shop.gateway.calls(), kMade);
  expect_leaves(*heir);
}

// Puts old files of the tests' server back.
void copy_files(const char* from, const char* to) {
  sandbox::PostgresServer& server = test::postgres();
  const auto in = server.folder();
  sandbox::run_to_end(server.program("/bin/rm", {"-rf", in / to}), std::chrono::seconds(20));
  sandbox::run_to_end(server.program("/bin/cp", {"-a", in / from, in / to}),
                      std::chrono::seconds(60));
}

void keep_files() {
  test::postgres().stop();
  copy_files("data", "cold-calls");
  test::postgres().start();
}

void put_files_back() {
  test::postgres().stop();
  copy_files("cold-calls", "data");
  test::postgres().start();
}

void write(Shop& shop, const char* table, int rows) {
  shop.site.database().run(std::string("CREATE TABLE ") + table + " AS SELECT generate_series(1, " +
                           std::to_string(rows) + ")");
}

// While the server runs, so that no later run of the partitions tells that the files are old.
void back_up() {
  sandbox::PostgresServer& server = test::postgres();
  const auto folder = server.folder() / "cold-calls";
  sandbox::run_to_end(server.program("/bin/rm", {"-rf", folder}), std::chrono::seconds(20));
  sandbox::run_to_end(server.program("pg_basebackup", {"--pgdata", folder, "--checkpoint", "fast",
                                                       "--no-sync", "--dbname", server.url()}),
                      std::chrono::seconds(60));
}

// The first message's booking fails, so no checkpoint moves.
struct StuckCheckpoint : Shop {
  // The session: 120 s let a worker keep its partition while it is frozen.
  explicit StuckCheckpoint(int session_ms = 120000)
      : Shop(kQueryable, false, [](int) { return Site(1); }) {
    nlohmann::json rules = patch();
    rules["route"]["retry"]["max_attempts"] = 1000;
    rules["kafka"]["session.timeout.ms"] = session_ms;
    site.database().run("ALTER TABLE charges ADD CONSTRAINT stuck CHECK (payment <> 'p0')");
    worker = site.worker("w", rules);
    for (int i = 0; i < kKnown; ++i) send(i);
    await_charges(kKnown - 1);
    back_up();
    write(*this, "more", 100000);
    for (int i = kKnown; i < kMade; ++i) send(i);
    await_charges(kMade - 1);
  }
  void lose() {
    put_files_back();
    EXPECT_EQ(value("SELECT count(*) FROM charges"), std::to_string(kKnown - 1));
    site.database().run("ALTER TABLE charges DROP CONSTRAINT stuck");
  }
  void expect_all_asked_about() {
    await_charges(kMade);
    site.await_no_lag();
    expect_exact(kMade);
    EXPECT_EQ(gateway.calls(), kMade);
    EXPECT_EQ(gateway.questions(), kMade - kKnown);
  }

  std::unique_ptr<WorkerProcess> worker;
};

TEST(LostCalls, OfFilesThatArePutBackAreAskedAboutThoughNoCheckpointHasMoved) {
  HAPAX_NEEDS_KAFKA();
  StuckCheckpoint shop;
  shop.lose();
  shop.expect_all_asked_about();
}

// Kafka takes an offset from outside of the group once it has no member. It is the one that it has.
void await_no_members(const Site& site) {
  const auto has = committed(site.bootstrap(), site.group(), site.topic(), 0);
  ASSERT_TRUE(has);
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);;) {
    try {
      return reset_offset(site.bootstrap(), site.group(), site.topic(), 0, *has);
    } catch (const std::exception& error) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << error.what();
    }
  }
}

// A program is back before the worker, such as another service.
void lose_while_frozen(StuckCheckpoint& shop) {
  shop.worker->freeze();
  shop.lose();
  write(shop, "even_more", 200000);
}

TEST(LostCalls, OfFilesThatArePutBackAreAskedAboutThoughOthersWriteFirst) {
  HAPAX_NEEDS_KAFKA();
  StuckCheckpoint shop;
  lose_while_frozen(shop);
  shop.worker->thaw();
  shop.expect_all_asked_about();
}

TEST(LostCalls, OfFilesThatArePutBackAreAskedAboutThoughTheGroupTookThePartitionAway) {
  HAPAX_NEEDS_KAFKA();
  StuckCheckpoint shop(1500);
  lose_while_frozen(shop);
  await_no_members(shop.site);
  shop.worker->thaw();
  shop.worker->await("revoked");
  shop.expect_all_asked_about();
}

TEST(LostCalls, ThatNoCheckpointHasPassedAreToldToTheNextOwner) {
  HAPAX_NEEDS_KAFKA();
  StuckCheckpoint shop;
  expect_leaves(*shop.worker);
  shop.lose();
  write(shop, "even_more", 200000);
  shop.worker->start_again();
  shop.expect_all_asked_about();
}

// It starts again once its call has come back.
TEST(LostCalls, HideFromNoPartitionThatWaitsWhileOthersWrite) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kQueryable, false);
  shop.outside.update({{"lease", "60s"}, {"max_duration", "60s"}});
  shop.send(0, "hang");
  const auto worker = shop.worker("w");
  shop.gateway.await_hanging(1);
  back_up();
  write(shop, "more", 100000);
  for (int i = 1; i < kMade; ++i) shop.send(i);
  shop.await_charges(kMade - 1);
  put_files_back();
  worker->await("calls_in_doubt");  // in the other partition
  write(shop, "even_more", 200000);
  shop.gateway.release();
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  shop.expect_exact(kMade);
  EXPECT_EQ(shop.gateway.calls(), kMade);
}

// The timeline is the same, and the position is behind.
TEST(LostCalls, OfFilesThatArePutBackAreAskedAbout) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kQueryable, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < kKnown; ++i) shop.send(i);
  shop.await_charges(kKnown);
  shop.site.await_no_lag();

  keep_files();
  write(shop, "more", 100000);  // more than a server writes by itself as it starts
  for (int i = kKnown; i < kMade; ++i) shop.send(i);
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  worker->kill();
  put_files_back();
  EXPECT_EQ(shop.value("SELECT count(*) FROM charges"), std::to_string(kKnown))
      << "nothing is lost";
  worker->start_again();
  shop.await_charges(kMade);
  shop.site.await_no_lag();
  shop.expect_exact(kMade);
  EXPECT_EQ(shop.gateway.calls(), kMade);
  EXPECT_EQ(shop.gateway.questions(), kMade - kKnown);
}

}  // namespace
}  // namespace hapax::support
