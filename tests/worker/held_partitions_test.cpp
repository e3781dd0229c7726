#include "worker/held_partitions.hpp"

#include <gtest/gtest.h>

namespace hapax::worker {
namespace {

struct HeldPartitionsTest : ::testing::Test {
  std::shared_ptr<Partition> assigned(std::int32_t number, std::int64_t epoch) {
    auto partition = std::make_shared<Partition>(TopicPartition{"payments", number}, route, 0);
    partition->begin({.epoch = epoch});
    return partition;
  }

  flow::Route route;
  HeldPartitions held;
};

TEST_F(HeldPartitionsTest, HoldsTheNewestAssignmentOfEach) {
  const auto older = assigned(0, 3), newer = assigned(0, 4), other = assigned(1, 7);
  for (const auto& partition : {older, newer, other}) held.add(partition);
  EXPECT_EQ(held.all(), (HeldPartitions::List{newer, other}));
  EXPECT_FALSE(held.has(older));
  other->checkpointed(12);
  EXPECT_EQ(held.logs(), (store::HeldLogs{{newer->id(), {4, 0}}, {other->id(), {7, 12}}}));
}

TEST_F(HeldPartitionsTest, RemovesTheVeryAssignmentOnly) {
  const auto older = assigned(0, 3), newer = assigned(0, 4);
  held.add(newer);
  EXPECT_FALSE(held.remove(older));
  EXPECT_TRUE(held.has(newer));
  EXPECT_TRUE(held.remove(newer));
  EXPECT_TRUE(held.all().empty());
}

TEST_F(HeldPartitionsTest, RemovesAHaltedPartitionOnceItIsOver) {
  const auto partition = assigned(0, 3);
  held.add(partition);
  held.remove_if_over(partition->id());
  EXPECT_TRUE(held.has(partition)) << "it still writes checkpoints";
  partition->end();
  held.remove_if_over(partition->id());
  EXPECT_FALSE(held.has(partition));
}

}  // namespace
}  // namespace hapax::worker
