// What librdkafka fetches: started once agreed, paused and resumed once, started again if refused.
#include "worker/fetches.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

struct FetchesTest : PollGround {
  std::shared_ptr<Partition> fetch(std::int32_t number, Beginning beginning = {}) {
    const auto partition = start(number, std::move(beginning));
    fetches.started(partition->id());
    fetches.turn();
    return partition;
  }

  Fetches fetches{partitions, consumer, clock()};
};

TEST_F(FetchesTest, BeginAtTheNextOffset) {
  Beginning beginning;
  beginning.offset = 42;
  fetch(0, beginning);
  EXPECT_EQ(consumer.fetched.at(id(0)), 42);
  fetches.turn();
  EXPECT_EQ(consumer.starts, 1) << "it was started twice";
}

TEST_F(FetchesTest, BeginAtTheLastRecordReadBeforeIfThatIsEarlier) {
  Beginning beginning;
  beginning.offset = 42;
  const auto partition = start(0, beginning);
  partition->handover.read_before = {ReadRecord{1, 40, {}, 10}};
  fetches.started(id(0));
  fetches.turn();
  EXPECT_EQ(consumer.fetched.at(id(0)), 40);
}

TEST_F(FetchesTest, WhatCannotBeMovedStartsWithANewAssignmentOfAll) {
  fetch(0);
  consumer.cannot_move = {id(1)};
  fetch(1);
  EXPECT_EQ(consumer.restarts, 1);
  EXPECT_EQ(consumer.fetched.size(), 2U);
}

TEST_F(FetchesTest, ANewAssignmentOfAllComesOnceASecondAtMost) {
  consumer.cannot_move = {id(0)};
  fetch(0);
  consumer.cannot_move = {id(1)};
  now += milliseconds(999);
  fetch(1);
  EXPECT_EQ(consumer.restarts, 1);
  now += milliseconds(1);
  fetches.turn();
  EXPECT_EQ(consumer.restarts, 2);
}

TEST_F(FetchesTest, APartitionThatIsRefusedStartsAgainEveryFiveSeconds) {
  const auto partition = fetch(0);
  fetches.refused(*partition, "not allowed");
  EXPECT_EQ(partition->polling.refused, "not allowed");
  now += milliseconds(4999);
  fetches.turn();
  EXPECT_EQ(consumer.starts, 1);
  for (int expected : {2, 3}) {
    now += milliseconds(expected == 2 ? 1 : 5000);
    fetches.turn();
    EXPECT_EQ(consumer.starts, expected);
  }
  partition->polling.refused.clear();
  now += milliseconds(5000);
  fetches.turn();
  EXPECT_EQ(consumer.starts, 3) << "it was started though something has come";
}

TEST_F(FetchesTest, NothingStartsWhileAllArePaused) {
  fetch(0);
  fetches.pause_all();
  EXPECT_TRUE(consumer.fetched.empty());
  EXPECT_EQ(fetches.paused(), 1U);
  fetch(1);
  EXPECT_TRUE(consumer.fetched.empty());
  fetches.allow();
  fetches.turn();
  EXPECT_TRUE(consumer.fetched.contains(id(1)));
}

TEST_F(FetchesTest, APartitionThatWaitsForItsStartDoesNotGoOnAtItsOldOffset) {
  const auto halted = fetch(0);
  consumer.fetched.at(id(0)) = 7;
  fetches.stop(*halted);
  Beginning beginning;
  beginning.offset = 3;
  const auto resumed = start(0, beginning);
  fetches.started(id(0));
  fetches.pause_all();
  fetches.allow();
  fetches.resume(*resumed);
  EXPECT_FALSE(consumer.fetched.contains(id(0))) << "offsets 3 to 6 would be passed over";
  fetches.turn();
  EXPECT_EQ(consumer.fetched.at(id(0)), 3);
}

TEST_F(FetchesTest, PausingAllForgetsThatAPartitionIsAtItsEnd) {
  const auto partition = fetch(0);
  partition->polling.at_end = true;
  fetches.pause_all();
  EXPECT_FALSE(partition->polling.at_end);
}

TEST_F(FetchesTest, APausedPartitionIsCountedOnce) {
  const auto partition = fetch(0);
  fetches.pause(*partition);
  fetches.pause(*partition);
  fetches.pause_all();
  EXPECT_EQ(fetches.paused(), 1U);
  fetches.resume(*partition);
  EXPECT_EQ(fetches.paused(), 0U);
  EXPECT_TRUE(consumer.fetched.contains(id(0)));
  fetches.resume(*partition);
  EXPECT_EQ(fetches.paused(), 0U);
}

TEST_F(FetchesTest, AStartEndsAPause) {
  const auto partition = fetch(0);
  fetches.pause(*partition);
  fetches.started(id(0));
  fetches.turn();
  EXPECT_EQ(fetches.paused(), 0U);
}

TEST_F(FetchesTest, AStoppedPartitionIsFetchedNoMore) {
  const auto partition = fetch(0);
  fetches.started(id(0));
  fetches.stop(*partition);
  EXPECT_TRUE(consumer.fetched.empty());
  fetches.turn();
  EXPECT_TRUE(consumer.fetched.empty());
}

TEST_F(FetchesTest, APartitionThatIsOverIsNotStarted) {
  const auto partition = start(0);
  fetches.started(id(0));
  partition->end();
  fetches.turn();
  EXPECT_TRUE(consumer.fetched.empty());
}

}  // namespace
}  // namespace hapax::worker
