// `hapax check` sees before a worker does that its partitions would halt at their start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;
using testing::Not;

class CheckStarts : public testing::Test {
 protected:
  CheckStarts() {
    Producer producer(site.bootstrap());
    site.pay(producer, 0, 6);
    const auto worker = site.worker("before");
    site.await_no_lag();
    expect_leaves(*worker);
  }

  // `patch` changes the configuration of the worker that has left.
  Said check(const nlohmann::json& patch = {}) const {
    std::ofstream(folder.path() / "worker.json") << site.options("w", patch).config;
    return hapax({"check"}, folder.path() / "worker.json");
  }

  Site site = Site::on_mock_cluster(2);
  const sandbox::TemporaryFolder folder{"check"};
};

TEST_F(CheckStarts, FindsNothingIfTheGroupMayGoOn) {
  const Said said = check();
  EXPECT_THAT(said.text,
              HasSubstr("ok    start of topic " + site.topic() + ": no partition would"));
  EXPECT_THAT(said.text, Not(HasSubstr("would halt, ")));
}

// As after "start over": a new database, and the same group.
TEST_F(CheckStarts, FailIfKafkaKnowsTheGroupAndTheDatabaseDoesNot) {
  const test::Database other;
  const Said said = check({{"postgres", {{"url", other.worker().url}}}});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("FAIL  start of topic " + site.topic() +
                                   ": partitions 0, 1 would halt, checkpoint_missing: Kafka's "
                                   "offset 3 was committed by hapax on store "));
  EXPECT_THAT(said.text, HasSubstr("if postgres.url names the wrong database, correct it."));
  EXPECT_THAT(said.text, HasSubstr("give kafka.group.id a new name"));
  EXPECT_THAT(said.text, HasSubstr("earliest, accept_kafka, retry"));
  const Said renamed = check({{"postgres", {{"url", other.worker().url}}},
                              {"kafka", {{"group.id", "another-" + site.group()}}}});
  EXPECT_THAT(renamed.text, Not(HasSubstr("would halt, ")))
      << "the second way out does not lead out";
}

TEST_F(CheckStarts, LookAtNoPartitionThatIsHalted) {
  site.database().run("DELETE FROM hapax.checkpoints");
  EXPECT_THAT(check().text, HasSubstr("partitions 0, 1 would halt, checkpoint_missing"));
  site.database().run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, reason, "
      "detail, halted_by) VALUES ('" +
      site.group() + "', '" + site.topic() + "', 0, false, 1, 'checkpoint_missing', '', 'w')");
  EXPECT_THAT(check().text, HasSubstr("partitions 1 would halt, checkpoint_missing"));
}

}  // namespace
}  // namespace hapax::support
