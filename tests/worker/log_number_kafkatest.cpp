// Keys of coordinates through whole workers: groups of one scope mean the same by them.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

const nlohmann::json kCoordinates = {{"route", {{"key", "coordinates"}}}};

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
  const Said said = hapax({"resume", site.topic(), "--decision", "recreated", "--why", "made again",
                           "--yes", "--url", site.database().owner().url},
                          first->config());
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

}  // namespace
}  // namespace hapax::support
