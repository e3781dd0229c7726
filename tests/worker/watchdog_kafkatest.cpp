// The watchdog times handlers, and nothing else that a message waits for.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(Watchdog, DoesNotCountWaitingForAKeyThatAnotherTransactionHolds) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("BEGIN; LOCK TABLE hapax.idempotency_keys IN EXCLUSIVE MODE");
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  const auto worker = site.worker(
      "w", {{"postgres", {{"lock_timeout", "20s"}}}, {"worker", {{"handler_timeout", "1s"}}}});
  // Retention's statement, and the claim.
  site.await(
      "SELECT CASE WHEN count(*) >= 2 THEN 'both wait' END FROM pg_locks WHERE NOT granted "
      "AND relation = 'hapax.idempotency_keys'::regclass "
      "AND clock_timestamp() - waitstart > interval '3 s'",
      "both wait");
  site.database().run("COMMIT");
  site.await_booked(1);
  EXPECT_EQ(worker->count("handler_hangs"), 0U);
  expect_leaves(*worker);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
}

// The server's processes stand still: connections stay, and nothing answers.
class StandsStill {
 public:
  explicit StandsStill(test::Database& database) {
    std::ifstream(test::postgres().folder() / "data" / "postmaster.pid") >> pids_.emplace_back();
    std::istringstream backends(database.value("SELECT pid FROM pg_stat_activity"));
    for (pid_t pid = 0; backends >> pid;) pids_.push_back(pid);
    for (const pid_t pid : pids_) ::kill(pid, SIGSTOP);
  }
  ~StandsStill() {
    for (const pid_t pid : pids_) ::kill(pid, SIGCONT);
  }
  StandsStill(const StandsStill&) = delete;
  StandsStill& operator=(const StandsStill&) = delete;

 private:
  std::vector<pid_t> pids_;
};

TEST(Watchdog, DoesNotCountTheTimeInWhichPostgresqlStandsStill) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hold"}}));
  const auto worker =
      site.worker("w", {{"postgres", {{"lock_timeout", "9m"}, {"statement_timeout", "10m"}}},
                        {"worker", {{"handler_timeout", "5s"}}}});
  site.await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1");
  {
    const StandsStill frozen(site.database());
    worker->await("postgres_down");  // three times the handler's time later
  }
  site.database().run("SELECT pg_advisory_unlock(1)");
  site.await_booked(1);
  EXPECT_EQ(worker->count("handler_hangs"), 0U);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
