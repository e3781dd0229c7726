// Starts at an offset that is not hapax's, or that an operator chose, while Kafka takes no commit.
// Then the worker dies before it has committed another offset.
#include <gtest/gtest.h>

#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using Request = kafka::MockCluster::Request;
using Error = kafka::MockCluster::Error;

// Payments [0, 20) wait in one partition. A tool has set the group's offset, before the group's
// first worker: the mock broker takes it from no other client later.
class StartCommit : public testing::Test {
 protected:
  ~StartCommit() override { Site::mock_cluster().accept(Request::commit_offsets); }

  void set_offset(std::int64_t offset) {
    site.pay(producer, 0, 20);
    reset_offset(site.bootstrap(), site.group(), site.topic(), 0, {offset, ""});
  }

  // A worker that Kafka refuses all commits at first, and that dies at `crash_at` once it runs.
  std::unique_ptr<WorkerProcess> refused_worker(const nlohmann::json& patch, const char* crash_at) {
    Site::mock_cluster().refuse_all(Request::commit_offsets, Error::unknown);
    auto worker = site.worker("w", patch, crash_at);
    EXPECT_FALSE(worker->dies_before("start_delayed")) << "it ran what it could not tell Kafka";
    const std::string epoch = site.database().value("SELECT epoch FROM hapax.checkpoints");
    site.await("SELECT epoch > 2 + " + epoch + " FROM hapax.checkpoints", "t");
    EXPECT_EQ(booked(), "0") << "something ran";
    Site::mock_cluster().accept(Request::commit_offsets);
    EXPECT_EQ(worker->ended().signal, SIGKILL) << worker->output();
    EXPECT_EQ(worker->count("cautious"), 0U) << "starts that Kafka refused count as runs";
    return worker;
  }

  std::string booked() { return site.database().value("SELECT count(*) FROM payments"); }

  Site site = Site::on_mock_cluster(1);
  Producer producer{site.bootstrap()};
};

// Else what ran would be below the highest checkpoint and unknown.
TEST_F(StartCommit, AnOffsetOfAnOperatorIsFollowedOnceByPosition) {
  const nlohmann::json by_position = {{"route", {{"key", "position"}}}};
  set_offset(15);
  const auto worker = refused_worker(by_position, "checkpointed:1");
  worker->start_again();
  site.pay(producer, 20, 5);
  site.await_no_lag();
  EXPECT_EQ(booked(), "10");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.halts"), "0");
  EXPECT_EQ(site.database().value("SELECT string_agg(concat_ws(' ', cause, to_offset), ', ') FROM "
                                  "hapax.position_changes"),
            "first_start 15");
  expect_leaves(*worker);
}

// Else the next start follows Kafka's offset, and what stands before it never runs.
TEST_F(StartCommit, AnOperatorsSkipHoldsThoughKafkasOffsetIsBehindIt) {
  set_offset(18);
  site.database().run(  // as `offsets skip --to 12` leaves it
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope, "
      "next_offset, highest, start_as) VALUES ('" +
      site.group() + "', '" + site.topic() + "', 0, 1, '', 'scripted', 12, 12, 'checkpoint')");
  const auto worker = refused_worker({}, "committed:1");
  worker->start_again();
  site.await_no_lag();
  EXPECT_EQ(site.database().value("SELECT count(*), count(DISTINCT id) FROM payments"), "8|8");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
