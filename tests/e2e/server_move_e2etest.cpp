// The runbook for a move to another PostgreSQL server, typed as docs/runbooks.md has it. Both
// servers have the version that is installed here.
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

}  // namespace
}  // namespace hapax::support
