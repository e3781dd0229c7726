// Keys of coordinates through whole workers: groups of one scope mean the same by them.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

const nlohmann::json kCoordinates = {{"route", {{"key", "coordinates"}}}};

Said decide_on_log(Site& site, const WorkerProcess& worker, const std::string& decision) {
  // The log line comes before the row.
  site.await("SELECT count(*) > 0 FROM hapax.halts WHERE ended_at IS NULL", "t");
  return hapax({"resume", site.topic(), "--decision", decision, "--why", "made again", "--yes",
                "--url", site.database().owner().url},
               worker.config());
}

TEST(LogNumber, ANewGroupFindsWhatTookEffectFromATopicThatWasMadeAgain) {
  Site site = Site::on_mock_cluster(2);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto first = site.worker("first", kCoordinates);
  site.await_no_lag();
  expect_leaves(*first);
  // As if the topic had been made again since, which the operator decides for the first group.
  site.database().run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, "
      "reason, detail, halted_by) SELECT group_id, topic, partition, false, 1, "
      "'topic_recreated', 'by this test', 'test' FROM hapax.checkpoints");
  const Said said = decide_on_log(site, *first, "recreated");
  ASSERT_EQ(said.code, 0) << said.text;
  const std::string booked = "SELECT count(*) FROM payments";
  first->start_again();
  site.await(booked, "40");  // other messages, as far as anybody can tell
  site.await("SELECT count(DISTINCT generation), min(generation) FROM hapax.logs", "1|2");

  nlohmann::json other = kCoordinates;
  other["kafka"] = {{"group.id", site.group() + "-renamed"}};
  const auto second = site.worker("second", other);
  site.await("SELECT sum(next_offset), min(generation) FROM hapax.checkpoints WHERE group_id = '" +
                 site.group() + "-renamed'",
             "20|2");
  EXPECT_EQ(site.database().value(booked), "40") << "its messages took effect twice";
  expect_leaves(*first);
  expect_leaves(*second);
}

// What a topic that was made again, and has grown since, looks like. Its messages would be taken
// for those of the old one.
TEST(LogNumber, IsNotThatOfALogWhoseLastRecordIsAnother) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto first = site.worker("first", kCoordinates);
  site.await_no_lag();
  expect_leaves(*first);
  site.database().run("UPDATE hapax.checkpoints SET last_record = '1/19/1'");
  site.pay(producer, 20, 20);
  nlohmann::json other = kCoordinates;
  other["kafka"] = {{"group.id", site.group() + "-renamed"}};
  const auto second = site.worker("second", other);
  second->await("halted", {{"reason", "topic_recreated"}});
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");
  EXPECT_EQ(decide_on_log(site, *second, "recreated").code, 0);
  site.await("SELECT count(*), count(DISTINCT id) FROM payments", "60|40");
  site.await("SELECT generation FROM hapax.checkpoints WHERE next_offset = 40", "2");
  expect_leaves(*second);
}

// The same for the group itself, if an operator knows better.
TEST(LogNumber, IsKeptIfAnOperatorDecidesThatTheLogIsTheSame) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w", kCoordinates);
  site.await_no_lag();
  expect_leaves(*worker);
  site.database().run("UPDATE hapax.checkpoints SET last_record = '1/19/1'");
  site.pay(producer, 20, 10);
  worker->start_again();
  worker->await("halted", {{"reason", "offset_above_end"}});
  EXPECT_EQ(decide_on_log(site, *worker, "same_topic").code, 0);
  site.await_booked(30);
  site.await_no_lag();
  EXPECT_EQ(site.database().value("SELECT count(*), count(DISTINCT id) FROM payments"), "30|30");
  EXPECT_EQ(site.database().value("SELECT generation FROM hapax.checkpoints"), "1");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
