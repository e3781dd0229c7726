// Order keys in sequence, side by side; nothing waits that need not.
#include "worker/dispatcher.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;

flow::Route route() {
  flow::Route route;
  route.topic = "payments";
  return route;
}

// The dispatcher never looks into a record, so these have none; `attempts` tells them apart.
Item item(int number) {
  Item item;
  item.attempts = number;
  return item;
}

struct DispatcherTest : testing::Test {
  std::shared_ptr<Partition> partition(std::int32_t number = 0) {
    auto made = std::make_shared<Partition>(TopicPartition("payments", number), route_, 0);
    made->begin({.epoch = 1});
    return made;
  }
  int take() {
    held_.push_back(*dispatcher_.take());
    return held_.back().item.attempts;
  }
  Work give_back() {
    Work work = std::move(held_.back());
    held_.pop_back();
    return work;
  }

  flow::Route route_ = route();
  Dispatcher dispatcher_;
  std::vector<Work> held_;
};

TEST_F(DispatcherTest, RunsOneMessageOfAnOrderKeyAtATimeInOrder) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1), {});
  dispatcher_.add(p, 7, item(2), {});
  dispatcher_.add(p, 8, item(3), {});
  EXPECT_EQ(take(), 1);
  EXPECT_EQ(take(), 3);  // 2 waits for 1
  Work three = give_back();
  dispatcher_.settled(give_back());
  EXPECT_EQ(take(), 2);
  dispatcher_.settled(std::move(three));
}

TEST_F(DispatcherTest, AWaitingMessageHoldsItsOrderKeyAndNoOther) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1), {});
  dispatcher_.add(p, 7, item(2), {});
  dispatcher_.add(p, 8, item(3), {});
  EXPECT_EQ(take(), 1);
  dispatcher_.again(give_back(), milliseconds(30));
  EXPECT_EQ(take(), 3);
  EXPECT_EQ(take(), 1);  // comes back before 2, after its time
}

TEST_F(DispatcherTest, ReadyOrderKeysTakeTurns) {
  const auto p = partition();
  for (int i = 0; i < 3; ++i) dispatcher_.add(p, 7, item(i), {});
  dispatcher_.add(p, 8, item(10), {});
  EXPECT_EQ(take(), 0);
  dispatcher_.settled(give_back());
  EXPECT_EQ(take(), 10);
}

TEST_F(DispatcherTest, DroppingAPartitionDropsItsQueueAndWaitsForWhatRuns) {
  const auto p = partition();
  const auto other = partition(1);
  dispatcher_.add(p, 7, item(1), {});
  dispatcher_.add(p, 7, item(2), {});
  dispatcher_.add(p, 8, item(3), milliseconds(10000));
  dispatcher_.add(other, 7, item(4), {});
  EXPECT_EQ(take(), 1);
  dispatcher_.drop(*p);
  EXPECT_EQ(dispatcher_.load().queued, 1U);
  EXPECT_FALSE(dispatcher_.wait_idle({p}, Clock::now()));
  dispatcher_.settled(give_back());
  EXPECT_TRUE(dispatcher_.wait_idle({p}, Clock::now()));
  EXPECT_EQ(take(), 4);
  dispatcher_.add(p, 9, item(5), {});  // too late: it is dropped
  EXPECT_EQ(dispatcher_.load().queued, 0U);
}

TEST_F(DispatcherTest, ARetryOfADroppedPartitionIsDroppedToo) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1), {});
  EXPECT_EQ(take(), 1);
  dispatcher_.drop(*p);
  dispatcher_.again(give_back(), {});
  EXPECT_EQ(dispatcher_.load().queued, 0U);
  EXPECT_TRUE(dispatcher_.wait_idle({p}, Clock::now()));
}

TEST_F(DispatcherTest, StopWakesEveryLane) {
  std::thread lane([&] { EXPECT_FALSE(dispatcher_.take().has_value()); });
  dispatcher_.stop();
  lane.join();
}

}  // namespace
}  // namespace hapax::worker
