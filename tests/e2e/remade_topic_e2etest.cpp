// A topic that is deleted and made again while a worker runs. Its offsets then have other messages,
// and none of them may be passed over.
#include <gtest/gtest.h>

#include <functional>

#include "kafka/consumer.hpp"
#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr const char* kHalts =
    "SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL "
    "AND reason IN ('topic_recreated', 'offset_unproven', 'offset_above_end')";

std::unique_ptr<WorkerProcess> worked(Site& site, Producer& producer) {
  site.pay(producer, 0, 20);
  auto worker = site.worker("w");
  site.await_no_lag();
  return worker;
}

void make_again(
    const Site& site, const std::function<void()>& between = [] {}) {
  delete_topic(site.bootstrap(), site.topic());
  between();
  create_topic(site.bootstrap(), site.topic(), site.partitions());
  Producer producer(site.bootstrap());
  site.pay(producer, 20, 60);
}

// A librdkafka that does not bear this ends the worker. As its supervisor does then.
void start_again_if_broken(WorkerProcess& worker) {
  if (!kafka::is_broken_by_another_topic_id()) return;
  EXPECT_FALSE(worker.ended().success());
  worker.start_again();
}

void accept(Site& site, const WorkerProcess& worker) {
  site.await(kHalts, "1");  // the log line comes before the row
  const Said said = hapax({"resume", site.topic() + "/0", "--decision", "recreated", "--why",
                           "looked at it", "--yes", "--url", site.database().owner().url},
                          worker.config());
  EXPECT_EQ(said.code, 0) << said.text;
}

// It halts; once an operator has decided, all of both logs stands once, and the worker leaves.
void expect_halt_then_all(Site& site, WorkerProcess& worker) {
  site.await(kHalts, "1");
  accept(site, worker);
  site.await_booked(80);
  site.await_no_lag();
  site.expect_exact(80);
  expect_leaves(worker);
}

TEST(RemadeTopic, HaltsAWorkerThatRunsAndNothingOfItIsPassedOver) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto worker = worked(site, producer);
  make_again(site, [&] {
    worker->await("log_doubted");
    worker->await_not_ready(site.topic() + "/0: starting: ");
    worker->await_metric("hapax_partition_state{partition=\"0\",state=\"starting\",topic=\"" +
                         site.topic() + "\"} 1");
  });
  worker->await("halted", {{"partition", 0}});
  site.await(kHalts, "1");
  worker->await_not_ready("halted: ");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");
  expect_halt_then_all(site, *worker);
}

// It saw nothing of it: no error, and an offset that the new log has.
TEST(RemadeTopic, HaltsAWorkerThatStoodStillMeanwhile) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto worker = worked(site, producer);
  worker->freeze();
  make_again(site);
  worker->thaw();
  start_again_if_broken(*worker);
  expect_halt_then_all(site, *worker);
}

// What it settled of the new log must not become the group's offset there.
TEST(RemadeTopic, IsNotHiddenByAWorkerThatLeavesBeforeItLooked) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto worker = worked(site, producer);
  worker->freeze();
  make_again(site);
  worker->thaw();
  site.await_booked(21);
  if (kafka::is_broken_by_another_topic_id())
    worker->stop(std::chrono::seconds(60));  // or it has crashed, as docs/failures.md tells
  else
    expect_leaves(*worker);
  worker->start_again();
  expect_halt_then_all(site, *worker);
}

// No wait in between: the worker may have seen nothing but an error, or not even that.
TEST(RemadeTopic, AtOnceUnderAWorkerThatRunsHaltsOrAllOfItTakesEffect) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto worker = worked(site, producer);
  make_again(site);
  if (kafka::is_broken_by_another_topic_id() && worker->dies_before("halted"))
    worker->start_again();
  site.await("SELECT (" + std::string(kHalts) + ") = 1 OR (SELECT count(*) FROM payments) = 80",
             "t");
  if (site.database().value(kHalts) == "1") accept(site, *worker);
  site.await_booked(80);
  site.await_no_lag();
  site.expect_exact(80);
  expect_leaves(*worker);
}

// The last commit of the worker before came after the topic was made again. So no offset tells, and
// the new log has grown past the checkpoint. The record below the checkpoint tells.
TEST(RemadeTopic, HaltsAnotherWorkerThoughTheGroupsOffsetStandsInTheNewTopic) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto first = worked(site, producer);
  expect_leaves(*first);
  const auto offset = committed(site.bootstrap(), site.group(), site.topic(), 0);
  make_again(site);
  reset_offset(site.bootstrap(), site.group(), site.topic(), 0, *offset);
  const auto second = site.worker("second");
  second->await("halted", {{"partition", 0}});
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");
  expect_halt_then_all(site, *second);
}

// Who cannot tell topic ids would give its keys of coordinates the old messages' names.
TEST(RemadeTopic, IsNotTakenForTheOldOneByAGroupThatBeginsThere) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  nlohmann::json patch = {{"route", {{"key", "coordinates"}}}};
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w", patch);
  site.await_no_lag();
  expect_leaves(*worker);
  delete_topic(site.bootstrap(), site.topic());
  create_topic(site.bootstrap(), site.topic(), site.partitions());
  Producer(site.bootstrap()).send(site.payment(20));
  patch["kafka"] = {{"group.id", site.group() + "-renamed"}};
  const auto renamed = site.worker("renamed", patch);
  if (!kafka::can_tell_topic_ids()) {
    renamed->await("halted", {{"reason", "topic_recreated"}});
    accept(site, *renamed);
  }
  site.await_booked(21);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.dead_letters"), 0);
  expect_leaves(*renamed);
}

// The new log is longer than the old one was, so only its records tell.
TEST(RemadeTopic, IsNotTakenForTheOldOneByAGroupThatBeginsThereThoughItIsLonger) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  nlohmann::json patch = {{"route", {{"key", "coordinates"}}}};
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w", patch);
  site.await_no_lag();
  expect_leaves(*worker);
  make_again(site);
  patch["kafka"] = {{"group.id", site.group() + "-renamed"}};
  const auto renamed = site.worker("renamed", patch);
  if (!kafka::can_tell_topic_ids()) {
    renamed->await("halted", {{"reason", "topic_recreated"}});
    accept(site, *renamed);
  }
  site.await_booked(80);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.dead_letters"), 0);
  expect_leaves(*renamed);
}

}  // namespace
}  // namespace hapax::support
