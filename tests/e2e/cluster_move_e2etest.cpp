// The runbook for a move to another Kafka cluster, typed as docs/operating.md has it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "support/group_lag.hpp"
#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"
#include "support/runbook.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr const char* kNewGroup = "payments-2";

class ClusterMove : public testing::Test {
 protected:
  // The page calls topic and group "payments".
  Said types(std::string commands, const std::filesystem::path& folder) {
    const auto call_it = [&](const std::string& after, const std::string& name) {
      commands =
          std::regex_replace(commands, std::regex(after + " payments\\b"), after + ' ' + name);
    };
    call_it("--topic", site_->topic());
    call_it("forget-group", site_->group());
    return type(commands, folder, {{"OWNER", site_->database().owner().url}});
  }

  // From the third record of each partition on, as if Kafka had deleted the others meanwhile: so
  // all offsets are others.
  void mirror_to(const std::string& bootstrap) {
    create_topic(bootstrap, site_->topic(), site_->partitions());
    Producer producer(bootstrap);
    for (int partition = 0; partition < site_->partitions(); ++partition)
      for (const Incoming& record : read_records(site_->bootstrap(), site_->topic(), partition))
        if (record.offset >= 2)
          producer.produce({site_->topic(), record.payload, record.key, record.headers, partition,
                            record.timestamp_ms});
    producer.flush();
  }

  std::unique_ptr<Site> site_;
};

TEST_F(ClusterMove, DoublesNothingLosesNothingAndForgetsTheOldGroup) {
  HAPAX_NEEDS_KAFKA();
  site_ = std::make_unique<Site>(2);
  const std::map<std::string, std::string> settings = {{"group.min.session.timeout.ms", "1000"}};
  KafkaServer other(settings);
  Producer before(site_->bootstrap());
  site_->pay(before, 0, 20);
  before.send(site_->payment(30, {{"do", "reject"}}));  // stays open, and comes again
  const auto worker = site_->worker("old");
  site_->await_no_lag();
  mirror_to(other.bootstrap());

  const auto blocks = commands_under("## Moving to another Kafka cluster");
  ASSERT_EQ(blocks.size(), 4u);
  const auto folder = worker->config().parent_path();
  Said said = types(blocks[0], folder);
  ASSERT_EQ(said.code, 0) << said.text;
  expect_leaves(*worker);
  said = types(blocks[1], folder);
  ASSERT_EQ(said.code, 0) << said.text;

  Producer after(other.bootstrap());
  site_->pay(after, 20, 10);
  const WorkerOptions there = site_->options(
      "new", {{"kafka", {{"bootstrap.servers", other.bootstrap()}, {"group.id", kNewGroup}}}});
  std::ofstream(folder / "new.json") << there.config;
  said = types(blocks[2], folder);
  EXPECT_EQ(said.code, 0) << said.text;
  WorkerProcess moved(there);
  await_no_lag(other.bootstrap(), kNewGroup, site_->topic(), site_->partitions());
  said = types(blocks[3], folder);
  EXPECT_EQ(said.code, 0) << said.text;
  expect_leaves(moved);

  site_->expect_exact(30, 2);  // payments, and the letter of each group
  EXPECT_EQ(
      site_->database().value("SELECT string_agg(DISTINCT group_id, ' ') FROM hapax.checkpoints"),
      kNewGroup);
  EXPECT_EQ(site_->database().value("SELECT count(*) FROM hapax.halts"), "0");
}

}  // namespace
}  // namespace hapax::support
