// The runbooks for a lost server, a lost region and another topic, typed as docs/runbooks.md has
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/command.hpp"
#include "support/group_lag.hpp"
#include "support/kafka_admin.hpp"
#include "support/mirror.hpp"
#include "support/runbook.hpp"
#include "support/successor.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A site whose PostgreSQL dies when 20 payments are in its successor, and 10 are not. The tests'
// server is there again at the end, however that comes.
struct Lost {
  explicit Lost(Way way) : successor(Successor::make(way)) {
    worker = site.worker("w", postgres_at(std::to_string(test::postgres().port()) +
                                          ",127.0.0.1:" + std::to_string(successor->port())));
    site.pay(producer, 0, 20);
    site.await_no_lag();
    successor->part();
    site.pay(producer, 20, 10);
    site.await_no_lag();
    site.expect_exact(30);
  }
  ~Lost() {
    worker.reset();
    if (!test::postgres().running()) test::postgres().start();
  }
  Lost(const Lost&) = delete;
  Lost& operator=(const Lost&) = delete;

  json postgres_at(const std::string& ports) const {
    return {
        {"postgres",
         {{"url", "postgresql://hapax_worker@127.0.0.1:" + ports + "/" + site.database().name()}}}};
  }
  void die() {
    test::postgres().kill();
    site.database().look_at(successor->stand_by(), site.database().name());
    EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");
  }
  std::filesystem::path folder() const { return worker->config().parent_path(); }

  Site site{2};
  std::unique_ptr<Successor> successor;
  Producer producer{site.bootstrap()};
  std::unique_ptr<WorkerProcess> worker;
};

TEST(RepairRunbooks, AfterAFailoverWhatTheStandbyLackedRunsAgain) {
  HAPAX_NEEDS_KAFKA();
  Lost lost(Way::promoted_replica);
  lost.die();
  lost.worker->await("postgres_down");
  Runbook runbook("## PostgreSQL fails over", lost.site,
                  {{"STANDBY", lost.successor->stand_by().url()}});
  runbook.type_next(lost.folder());
  lost.site.await_booked(30);
  lost.site.await_no_lag();
  runbook.type_next(lost.folder());
  lost.worker->await("postgres_up");
  lost.site.expect_exact(30);
  expect_leaves(*lost.worker);
}

TEST(RepairRunbooks, AfterARestoreWhatTheBackupLackedRunsAgain) {
  HAPAX_NEEDS_KAFKA();
  Lost lost(Way::restored_backup);
  lost.site.database().run("DELETE FROM payments WHERE nr % 2 = 0");  // the damage
  expect_leaves(*lost.worker);
  lost.die();
  lost.successor->take_over();
  const auto worker =
      lost.site.worker("w", lost.postgres_at(std::to_string(lost.successor->port())));
  Runbook runbook("## Restoring PostgreSQL from a backup", lost.site, {});
  worker->await_ready();
  runbook.type_next(worker->config().parent_path());
  lost.site.await_booked(30);
  lost.site.await_no_lag();
  runbook.type_next(worker->config().parent_path());
  lost.site.expect_exact(30);
  expect_leaves(*worker);
}

TEST(RepairRunbooks, AfterARegionIsLostTheOtherOneDoublesNothing) {
  HAPAX_NEEDS_KAFKA();
  Lost lost(Way::promoted_replica);
  Site& site = lost.site;
  const std::map<std::string, std::string> settings = {{"group.min.session.timeout.ms", "1000"}};
  KafkaServer other(settings);
  const std::string new_group = "payments-2";
  mirror_to(other.bootstrap(), site);
  lost.worker->kill();
  lost.die();

  json there = lost.postgres_at(std::to_string(lost.successor->port()));
  there["kafka"] = {{"bootstrap.servers", other.bootstrap()}, {"group.id", new_group}};
  const WorkerOptions options = site.options("new", there);
  std::ofstream(lost.folder() / "new.json") << options.config;
  const std::string owner = site.database().owner().url;
  Runbook runbook("## Moving to another region", site,
                  {{"STANDBY", lost.successor->stand_by().url()}, {"OWNER", owner}});
  runbook.type_next(lost.folder());
  WorkerProcess worker(options);
  await_no_lag(other.bootstrap(), new_group, site.topic(), site.partitions());
  const Said refused =
      hapax({"offsets", "forget-group", site.group(), "--url", owner, "--why", "lost", "--yes"},
            lost.folder() / "new.json");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("or --cluster-lost if it is gone for good"));
  runbook.type_next(lost.folder());
  site.expect_exact(30);
  EXPECT_EQ(
      site.database().value("SELECT string_agg(DISTINCT group_id, ' ') FROM hapax.checkpoints"),
      new_group);
  expect_leaves(worker);
}

TEST(RepairRunbooks, AnotherTopicSharesTheKeysAndTheOldOneHoldsNone) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  const std::string new_topic = site.topic() + "-2";
  create_topic(site.bootstrap(), new_topic, 1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto old = site.worker("old");
  const auto folder = old->config().parent_path();
  site.await_no_lag();
  WorkerOptions both = site.options("both"), last = site.options("last");
  last.config["routes"][0]["topic"] = new_topic;
  both.config["routes"].push_back(last.config["routes"][0]);
  std::ofstream(folder / "new.json") << both.config;
  std::ofstream(folder / "last.json") << last.config;

  Runbook runbook("## Moving to another topic", site, {{"OWNER", site.database().owner().url}});
  runbook.type_next(folder);
  expect_leaves(*old);
  WorkerProcess reads_both(both);
  for (int number = 10; number < 30; ++number) {  // ten of them once more
    Outgoing record = site.payment(number);
    record.topic = new_topic;
    record.partition = 0;
    producer.produce(record);
  }
  producer.flush();
  site.await_booked(30);
  site.await_no_lag();
  runbook.type_next(folder);
  expect_leaves(reads_both);
  WorkerProcess reads_new(last);
  await_no_lag(site.bootstrap(), site.group(), new_topic, 1);
  reads_new.await_ready();
  runbook.type_next(folder);
  site.expect_exact(30);
  EXPECT_EQ(site.database().value("SELECT string_agg(DISTINCT topic, ' ') FROM hapax.checkpoints"),
            new_topic);
  expect_leaves(reads_new);
}

}  // namespace
}  // namespace hapax::support
