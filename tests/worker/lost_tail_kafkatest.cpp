// worker.durability: PostgreSQL dies before workers' commits are on the disk.
//
// The test makes sure that they are lost. It freezes the processes that would write them: the WAL
// writer, and those that write pages, because WAL goes before pages. A synchronous commit would
// write them, too, so locks keep the worker from making one.
#include <gtest/gtest.h>

#include <csignal>

#include "store/transaction.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kBefore = 100;  // below a checkpoint
constexpr int kTailPayments = 300;

struct Crash {
  int booked;  // what all sessions could see before it
  int kept;    // after recovery, while the worker still stood
  int keys;    // completed ones, then
};

// The worker books some payments before a checkpoint, and the rest after it. Then all processes of
// PostgreSQL die, and it starts again. The worker was frozen meanwhile, and goes on.
Crash crash_under(Site& site, WorkerProcess& worker) {
  Producer producer(site.bootstrap());
  site.pay(producer, 0, kBefore);
  site.await_no_lag();
  site.await("SELECT count(*) FROM hapax.leases", "1");

  test::Database& database = site.database();
  auto options = database.owner();
  options.idle_in_transaction_timeout = std::chrono::minutes(10);
  store::Session session(options);
  store::Transaction holding(session);
  holding.run(std::string("SELECT FROM hapax.checkpoints, hapax.leases FOR UPDATE"));
  for (const char* type : {"walwriter", "background writer", "checkpointer"}) {
    const pid_t writer = database.count(
        std::string("SELECT pid FROM pg_stat_activity WHERE backend_type = '") + type + "'");
    EXPECT_EQ(::kill(writer, SIGSTOP), 0) << type;
  }

  site.pay(producer, kBefore, kTailPayments - kBefore);
  site.await_booked(kTailPayments);
  worker.freeze();
  Crash crash{};
  crash.booked = database.count("SELECT count(*) FROM payments");
  test::postgres().kill();
  test::postgres().start();
  crash.kept = database.count("SELECT count(*) FROM payments");
  crash.keys =
      database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE status = 'completed'");
  worker.thaw();
  return crash;
}

nlohmann::json durability(const char* name) {
  return {{"worker", {{"durability", name}}},
          {"kafka", {{"session.timeout.ms", 30'000}}},  // longer than it is frozen
          {"postgres", {{"lock_timeout", "2m"}, {"statement_timeout", "3m"}}}};
}

TEST(LostTail, OfEffectsThatWaitForTheCheckpointIsBookedAgainOnce) {
  Site site = Site::on_mock_cluster(2);
  const auto worker = site.worker("w", durability("checkpoint"));
  const Crash crash = crash_under(site, *worker);
  EXPECT_EQ(crash.booked, kTailPayments);
  EXPECT_LT(crash.kept, kTailPayments) << "nothing was lost: the rest of this test shows nothing";
  EXPECT_GE(crash.kept, kBefore) << "what a checkpoint covers must survive";
  EXPECT_EQ(crash.keys, crash.kept) << "effects and keys go together";
  worker->await("fenced");
  site.await_booked(kTailPayments);
  site.await_no_lag();
  site.expect_exact(kTailPayments);
  expect_leaves(*worker);
}

TEST(LostTail, ThereIsNoneOfEffectsThatWaitForTheDisk) {
  Site site = Site::on_mock_cluster(2);
  const auto worker = site.worker("w", durability("synchronous"));
  const Crash crash = crash_under(site, *worker);
  EXPECT_EQ(crash.kept, kTailPayments);
  EXPECT_EQ(crash.keys, kTailPayments);
  site.await_no_lag();
  site.expect_exact(kTailPayments);
  expect_leaves(*worker);
}

// Files copied while the server was shut down keep what is UNLOGGED, and so look like a restart.
TEST(LostTail, OfAColdCopyPutBackUnderALivingWorkerIsBookedAgain) {
  constexpr int kCount = 20;
  Site site = Site::on_mock_cluster(2);
  const auto worker = site.worker("w");
  Producer producer(site.bootstrap());
  Outgoing waiting = site.payment(0, {{"do", "wait"}});  // holds the checkpoint of partition 0
  waiting.key = "alone";
  producer.send(waiting);
  site.pay(producer, 1, 3);
  site.await_booked(3);
  worker->await("attempt_failed");

  sandbox::PostgresServer& server = test::postgres();
  const auto copy = [&](const char* from, const char* to) {
    const auto in = server.folder();
    sandbox::run_to_end(server.program("/bin/rm", {"-rf", in / to}), std::chrono::seconds(20));
    sandbox::run_to_end(server.program("/bin/cp", {"-a", in / from, in / to}),
                        std::chrono::seconds(60));
  };
  server.stop();
  copy("data", "cold");
  server.start();
  site.pay(producer, 4, kCount - 4);
  site.await_booked(kCount - 1);
  server.stop();
  copy("cold", "data");
  worker->freeze();
  server.start();
  EXPECT_LT(site.database().count("SELECT count(*) FROM payments"), kCount - 1)
      << "nothing is lost";
  worker->thaw();

  site.await_booked(kCount - 1);
  EXPECT_EQ(site.database().value("SELECT count(*), count(DISTINCT id) FROM payments"),
            site.database().value("SELECT 19, 19"));
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
