// PostgreSQL goes away under running workers, and comes back.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kPaymentsOfTwo = 4'000;

// PostgreSQL is there again at the end of a test, however it ends.
class PostgresAway {
 public:
  explicit PostgresAway(void (sandbox::PostgresServer::*go)()) { (test::postgres().*go)(); }
  ~PostgresAway() { end(); }
  PostgresAway(const PostgresAway&) = delete;
  PostgresAway& operator=(const PostgresAway&) = delete;

  void end() {
    if (!test::postgres().running()) test::postgres().start();
  }
};

// Two workers with all of a topic before them, some of it done.
struct TwoWorkers {
  Site site{4};
  std::unique_ptr<WorkerProcess> one = site.worker("one");
  std::unique_ptr<WorkerProcess> two = site.worker("two");

  TwoWorkers() {
    one->await("partition_started");
    two->await("partition_started");
    Producer producer(site.bootstrap());
    site.pay(producer, 0, kPaymentsOfTwo);
    site.await_booked(kPaymentsOfTwo / 10);
  }

  void expect_goes_on() {
    for (WorkerProcess* worker : {one.get(), two.get()}) worker->await("postgres_up");
    site.await_no_lag();
    site.expect_exact(kPaymentsOfTwo);
    EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0")
        << "an outage is not the message's failure";
    for (WorkerProcess* worker : {one.get(), two.get()}) {
      EXPECT_EQ(worker->count("postgres_down"), 1U) << worker->output();
      worker->await_ready();
      expect_leaves(*worker);
    }
  }
};

TEST(PostgresOutage, IsWaitedOutUncountedWithOneLineAWorker) {
  HAPAX_NEEDS_KAFKA();
  TwoWorkers running;
  PostgresAway away(&sandbox::PostgresServer::stop);
  for (WorkerProcess* worker : {running.one.get(), running.two.get()}) {
    worker->await("postgres_down");
    worker->await_not_ready("postgres: down");
  }
  away.end();
  running.expect_goes_on();
  for (WorkerProcess* worker : {running.one.get(), running.two.get()}) {
    EXPECT_EQ(worker->count("postgres_restarted"), 1U) << worker->output();
    EXPECT_EQ(worker->count("fenced"), 0U) << worker->output();
  }
}

// Crash recovery empties hapax.incarnation. So each worker that ran before starts again from its
// checkpoints.
TEST(PostgresOutage, ACrashIsSurvivedFromTheCheckpoints) {
  HAPAX_NEEDS_KAFKA();
  TwoWorkers running;
  PostgresAway away(&sandbox::PostgresServer::kill);
  for (WorkerProcess* worker : {running.one.get(), running.two.get()})
    worker->await("postgres_down");
  away.end();
  running.expect_goes_on();
  EXPECT_GT(running.one->count("fenced") + running.two->count("fenced"), 0U);
  EXPECT_EQ(running.one->count("postgres_restarted"), 0U) << running.one->output();
}

TEST(PostgresOutage, WhileThereIsNothingToDoIsNoticedOnceAndReadinessComesBack) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const auto worker = site.worker("w");
  worker->await_ready();
  PostgresAway away(&sandbox::PostgresServer::stop);
  worker->await_not_ready("postgres: down");
  away.end();
  worker->await_ready();
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);  // the lanes' connections are from before
  site.await_no_lag();
  site.expect_exact(10);
  EXPECT_EQ(worker->count("postgres_down"), 1U) << worker->output();
  expect_leaves(*worker);
}

TEST(PostgresOutage, AtStartIsWaitedFor) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  PostgresAway away(&sandbox::PostgresServer::stop);
  const auto worker = site.worker("w");
  worker->await("waiting_for_postgres");
  worker->await_not_ready("not started yet");
  away.end();
  site.await_no_lag();
  site.expect_exact(10);
  expect_leaves(*worker);
}

TEST(PostgresOutage, DoesNotKeepAWorkerFromLeaving) {
  HAPAX_NEEDS_KAFKA();
  TwoWorkers running;
  PostgresAway away(&sandbox::PostgresServer::stop);
  running.one->await("postgres_down");
  expect_leaves(*running.one);
  away.end();
  running.site.await_no_lag();
  running.site.expect_exact(kPaymentsOfTwo);
  expect_leaves(*running.two);
}

// Connections stand, and nothing answers: a synchronous standby that is gone, a storage that hangs.
TEST(PostgresOutage, ThatDoesNotAnswerDoesNotKeepAWorkerFromLeaving) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  const auto worker =
      site.worker("w", {{"postgres", {{"lock_timeout", "5m"}, {"statement_timeout", "10m"}}}});
  site.await_no_lag();
  site.database().run("BEGIN; LOCK TABLE hapax.checkpoints IN ACCESS EXCLUSIVE MODE");
  expect_leaves(*worker);
  EXPECT_EQ(worker->count("gave_up_waiting"), 1U) << worker->output();
  site.database().run("ROLLBACK");
  site.expect_exact(10);
}

}  // namespace
}  // namespace hapax::support
