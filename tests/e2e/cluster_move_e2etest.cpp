// The runbook for a move to another Kafka cluster, typed as docs/runbooks.md has it.
#include <gtest/gtest.h>

#include <fstream>

#include "support/group_lag.hpp"
#include "support/mirror.hpp"
#include "support/runbook.hpp"

namespace hapax::support {
namespace {

TEST(ClusterMove, DoublesNothingLosesNothingAndForgetsTheOldGroup) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  const std::map<std::string, std::string> settings = {{"group.min.session.timeout.ms", "1000"}};
  KafkaServer other(settings);
  const std::string new_group = "payments-2";
  Producer before(site.bootstrap());
  site.pay(before, 0, 20);
  before.send(site.payment(30, {{"do", "reject"}}));  // stays open, and comes again
  const auto worker = site.worker("old");
  site.await_no_lag();
  mirror_to(other.bootstrap(), site);

  const auto folder = worker->config().parent_path();
  Runbook runbook("## Moving to another Kafka cluster", site,
                  {{"OWNER", site.database().owner().url}});
  runbook.type_next(folder);
  expect_leaves(*worker);
  runbook.type_next(folder);

  Producer after(other.bootstrap());
  site.pay(after, 20, 10);
  const WorkerOptions there = site.options(
      "new", {{"kafka", {{"bootstrap.servers", other.bootstrap()}, {"group.id", new_group}}}});
  std::ofstream(folder / "new.json") << there.config;
  runbook.type_next(folder);
  WorkerProcess moved(there);
  await_no_lag(other.bootstrap(), new_group, site.topic(), site.partitions());
  runbook.type_next(folder);
  expect_leaves(moved);

  site.expect_exact(30, 2);  // payments, and the letter of each group
  EXPECT_EQ(
      site.database().value("SELECT string_agg(DISTINCT group_id, ' ') FROM hapax.checkpoints"),
      new_group);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.halts"), "0");
}

}  // namespace
}  // namespace hapax::support
