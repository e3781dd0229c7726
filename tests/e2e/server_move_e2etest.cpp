// The runbooks for a move to another PostgreSQL server, typed as docs/runbooks.md has them. Both
// servers have the version that is installed here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/runbook.hpp"

namespace hapax::support {
namespace {

TEST(ServerMove, GoesOnFromItsCheckpointAndDoublesNothing) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  sandbox::PostgresServer other;
  const std::string name = site.database().name();
  other.create_database(name);
  Runbook runbook("## Moving to another PostgreSQL server", site,
                  {{"OLD", site.database().owner().url}, {"NEW", other.url(name)}});
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  {
    const auto before = site.worker("before");
    site.await_no_lag();
    expect_leaves(*before);
    runbook.type_next(before->config().parent_path());
  }
  site.pay(producer, 20, 10);

  site.database().look_at(other, name);
  const auto worker = site.worker("w");
  worker->await("halted", {{"reason", "store_copied"}}, 2);
  site.await("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL", "2");
  const auto folder = worker->config().parent_path();
  runbook.type_next(folder);
  site.await_no_lag();
  runbook.type_next(folder);
  site.expect_exact(30);
  EXPECT_EQ(site.database().value("SELECT rolconfig FROM pg_roles WHERE rolname = 'hapax_worker'"),
            "{default_transaction_read_only=on}");
  expect_leaves(*worker);
}

// What replication leaves out would show here: dead letters and payments take their numbers from
// sequences, and the ledger has no primary key.
TEST(ServerMove, ByReplicationWorkersGoOnWhileTheTablesAreCopied) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  sandbox::PostgresServer other;
  test::Database& database = site.database();
  other.create_database(database.name());
  Runbook runbook("## Moving to another PostgreSQL server by replication", site,
                  {{"OLD", database.owner().url}, {"NEW", other.url(database.name())}});
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  producer.send(site.payment(20, {{"do", "reject"}}));
  const auto before = site.worker("before");
  const auto folder = before->config().parent_path();
  site.await_no_lag();

  EXPECT_THAT(runbook.type_next(folder),
              testing::HasSubstr("ALTER TABLE payments REPLICA IDENTITY FULL;"));
  database.run("ALTER TABLE payments REPLICA IDENTITY FULL");
  test::postgres().stop();
  test::postgres().start();
  before->await("postgres_restarted");
  runbook.type_next(folder);
  site.pay(producer, 21, 10);
  site.await_no_lag();
  database.run("UPDATE payments SET amount_minor = amount_minor");
  expect_leaves(*before);
  runbook.type_next(folder);
  EXPECT_EQ(database.value("SELECT count(*) FROM pg_replication_slots"), "0");

  database.look_at(other, database.name());
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.epochs NATURAL JOIN hapax.checkpoints"),
            "2");
  site.pay(producer, 31, 9);
  producer.send(site.payment(40, {{"do", "reject"}}));
  const auto worker = site.worker("w");
  worker->await("halted", {{"reason", "store_copied"}}, 2);
  site.await("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL", "2");
  runbook.type_next(worker->config().parent_path());
  site.await_no_lag();
  runbook.type_next(worker->config().parent_path());
  EXPECT_EQ(database.value("SELECT count(*), count(DISTINCT id), count(DISTINCT nr) FROM payments"),
            "39|39|39");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.dead_letters"), "2");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
