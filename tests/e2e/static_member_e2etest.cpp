// Static members (kafka.group.instance.id) come back without a rebalance.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(StaticMember, WorksOffAPartitionThatWasAddedWhileItWasDead) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer before(site.bootstrap());
  site.pay(before, 0, 1);
  const auto worker = site.worker("w", {{"kafka", {{"group.instance.id", "w"}}}});
  site.await_booked(1);
  worker->kill();
  add_partitions(site.bootstrap(), site.topic(), 2);
  Outgoing added = site.payment(1);
  added.partition = 1;
  Producer(site.bootstrap()).send(added);
  worker->start_again();
  site.await_booked(2);
  expect_leaves(*worker);
  site.expect_exact(2);
}

// librdkafka 2.0 aborts if it describes a group by its admin call and no broker answers in time.
TEST(StaticMember, LooksAtItsGroupWhileNoBrokerAnswersAndLives) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const auto worker =
      site.worker("w", {{"kafka", {{"group.instance.id", "w"}}}, {"log", {{"level", "debug"}}}});
  worker->await("partition_started");
  shared_kafka().freeze();
  worker->await("group_not_seen");
  shared_kafka().thaw();
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 5);
  site.await_booked(5);
  expect_leaves(*worker);
  site.expect_exact(5);
}

// The group gives it what it had, without a rebalance.
TEST(StaticMember, GoesOnIfARouteWasTakenAwayWhileItWasDead) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const std::string other = site.topic() + "-other";
  create_topic(site.bootstrap(), other, 1);
  WorkerOptions both = site.options("w", {{"kafka", {{"group.instance.id", "w"}}}});
  const WorkerOptions one = both;
  both.config["routes"].push_back(both.config["routes"][0]);
  both.config["routes"][1]["topic"] = other;
  {
    WorkerProcess before(both);
    before.await("partition_started", {}, 2);
    before.kill();
  }
  WorkerProcess worker(one);
  worker.await("not_ours", {{"topic", other}});
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 5);
  site.await_booked(5);
  worker.await("assigned", {{"partitions", 1}});
  expect_leaves(worker);
  site.expect_exact(5);
}

// As in Kubernetes, if there are fewer pods from now on. It does not leave the group.
TEST(StaticMember, ThatDoesNotComeBackIsTakenOverAtTheEndOfItsSession) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  const auto stays = site.worker("a", {{"kafka", {{"group.instance.id", "a"}}}});
  stays->await("partition_started", {}, 2);
  const auto goes = site.worker("b", {{"kafka", {{"group.instance.id", "b"}}}});
  goes->await("partition_started");
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  site.await_booked(10);
  // With the worker's own configuration, and so as the same member, if it joined.
  const Said status = hapax({"status"}, stays->config());
  EXPECT_EQ(status.code, 0) << status.text;
  expect_leaves(*goes);
  site.pay(producer, 10, 10);
  site.await_booked(20);
  stays->await("assigned", {{"partitions", 2}}, 2);
  site.await_no_lag();
  expect_leaves(*stays);
  site.expect_exact(20);
}

}  // namespace
}  // namespace hapax::support
