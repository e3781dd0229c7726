// Caution comes when a partition's runs end early, and goes when nothing is left to be found.
#include "worker/caution.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

constexpr std::size_t kLanes = 4, kQueue = 100;

struct CautionTest : PollGround {
  static Beginning ended_early() {
    Beginning beginning;
    beginning.started_runs = 2;
    beginning.log_end = 10;
    return beginning;
  }
  // Whether a message of this partition runs alone.
  bool is_cautious(const std::shared_ptr<Partition>& partition) {
    EXPECT_TRUE(partition->receive(partition->progress().next, 1));
    dispatcher.add(partition, ++order_key, {});
    auto batch = dispatcher.take_now(1, now);
    const bool cautious = batch->cautious;
    batch->works.front().settled = 1;
    dispatcher.finish(std::move(batch->works));
    settle(*partition, partition->progress().next - 1, 1);
    return cautious;
  }
  static void run(Partition& partition, std::size_t handlers) {
    for (; handlers > 0; --handlers) partition.count_handler_run();
  }
  std::shared_ptr<Partition> start_cautiously(std::int32_t number = 0) {
    const auto partition = start(number, ended_early());
    caution.started(partition);
    caution.begin();
    return partition;
  }

  Caution caution{dispatcher, kLanes, kQueue};
  std::uint64_t order_key = 0;
};

TEST_F(CautionTest, IsForPartitionsWhoseLastRunsEndedEarly) {
  const auto partition = start_cautiously();
  EXPECT_TRUE(is_cautious(partition));
  caution.end();
  EXPECT_TRUE(is_cautious(partition)) << "it ended though nothing has come back";
}

TEST_F(CautionTest, NamesTheMessageWhoseAnnouncedRunDidNotComeBack) {
  Beginning beginning = ended_early();
  beginning.known.attempts[3] = {.count = 1};
  beginning.known.attempts[7] = {.crashes = 1};
  const auto partition = start(0, beginning);
  testing::internal::CaptureStderr();
  caution.started(partition);
  caution.begin();
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("offset=7 times=1"), std::string::npos) << logged;
  EXPECT_EQ(logged.find("offset=3"), std::string::npos) << logged;
}

TEST_F(CautionTest, IsNotForAFirstStart) {
  Beginning beginning = ended_early();
  beginning.started_runs = 1;
  const auto partition = start(0, beginning);
  caution.started(partition);
  caution.begin();
  EXPECT_FALSE(is_cautious(partition));
}

TEST_F(CautionTest, IsNotForAnEmptyLog) {
  Beginning beginning = ended_early();
  beginning.offset = beginning.log_end;
  const auto partition = start(0, beginning);
  caution.started(partition);
  caution.begin();
  EXPECT_FALSE(is_cautious(partition));
}

TEST_F(CautionTest, EndsWhenTwiceAsManyHandlersHaveComeBackAsRunAtOnce) {
  route.batch = 3;
  const auto partition = start_cautiously();
  run(*partition, 2 * kLanes * 3 - 1);
  caution.end();
  EXPECT_TRUE(is_cautious(partition));
  run(*partition, 1);
  caution.end();
  EXPECT_FALSE(is_cautious(partition));
}

TEST_F(CautionTest, EndsAfterAThousandRunsAtMost) {
  route.batch = 100'000;
  const auto partition = start_cautiously();
  run(*partition, 999);
  caution.end();
  EXPECT_TRUE(is_cautious(partition));
  run(*partition, 1);
  caution.end();
  EXPECT_FALSE(is_cautious(partition));
}

TEST_F(CautionTest, EndsWhenTheCheckpointHasPassedAQueue) {
  const auto partition = start_cautiously();
  partition->checkpointed(kQueue - 1);
  caution.end();
  EXPECT_TRUE(is_cautious(partition));
  partition->checkpointed(kQueue);
  caution.end();
  EXPECT_FALSE(is_cautious(partition));
}

TEST_F(CautionTest, EndsAtTheEndOfTheLogOnceNothingIsInHand) {
  const auto partition = start_cautiously();
  ASSERT_TRUE(partition->receive(0, 1));
  partition->polling.at_end = true;
  caution.end();
  EXPECT_TRUE(is_cautious(partition));
  settle(*partition, 0, 1);
  caution.end();
  EXPECT_FALSE(is_cautious(partition));
}

TEST_F(CautionTest, OfAllThatStartTogetherIsOneLine) {
  for (std::int32_t number = 0; number < 100; ++number)
    caution.started(start(number, ended_early()));
  testing::internal::CaptureStderr();
  caution.begin();
  caution.begin();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  EXPECT_NE(told.find("partitions=100"), std::string::npos) << told;
}

TEST_F(CautionTest, OfOnePartitionOutlastsAnothers) {
  const auto first = start_cautiously(0), second = start_cautiously(1);
  first->end();
  caution.end();
  EXPECT_TRUE(is_cautious(second));
}

}  // namespace
}  // namespace hapax::worker
