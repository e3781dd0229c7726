// The runbook for a move to another PostgreSQL server, typed as docs/operating.md has it. Both
// servers have the version that is installed here.
#include <gtest/gtest.h>

#include <regex>

#include "support/runbook.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(ServerMove, GoesOnWhereItWasAndDoublesNothing) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  sandbox::PostgresServer other;
  const std::string name = site.database().name();
  other.create_database(name);
  const std::map<std::string, std::string> variables = {{"OLD", site.database().owner().url},
                                                        {"NEW", other.url(name)}};
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  {
    const auto before = site.worker("before");
    site.await_no_lag();
    expect_leaves(*before);
    const Said said = type(commands_under("## Moving to another PostgreSQL server").at(0),
                           before->config().parent_path(), variables);
    ASSERT_EQ(said.code, 0) << said.text;
  }
  site.pay(producer, 20, 10);

  site.database().look_at(other, name);
  const auto worker = site.worker("w");
  worker->await("halted", {{"reason", "store_copied"}}, 2);
  site.await("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL", "2");
  const auto blocks = commands_under("## Moving to another PostgreSQL server");
  ASSERT_EQ(blocks.size(), 3u);
  for (const std::size_t block : {1u, 2u}) {
    const Said said =
        type(std::regex_replace(blocks[block], std::regex("\\bpayments\\b"), site.topic()),
             worker->config().parent_path(), variables);
    EXPECT_EQ(said.code, 0) << said.text;
    site.await_no_lag();
  }
  site.expect_exact(30);
  EXPECT_EQ(site.database().value("SELECT rolconfig FROM pg_roles WHERE rolname = 'hapax_worker'"),
            "{default_transaction_read_only=on}");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
