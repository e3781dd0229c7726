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

Beginning beginning() {
  Beginning beginning;
  beginning.epoch = 1;
  return beginning;
}

// But for connections lost, the dispatcher never looks into a record, so these have none;
// `attempts` tells them apart.
Item item(int number, Clock::time_point not_before = {}) {
  Item item;
  item.attempts = number;
  item.not_before = not_before;
  return item;
}

std::vector<int> numbers(const Batch& batch) {
  std::vector<int> numbers;
  for (const Work& work : batch.works)
    for (const Item& item : work.items) numbers.push_back(item.attempts);
  return numbers;
}

struct DispatcherTest : testing::Test {
  std::shared_ptr<Partition> partition(std::int32_t number = 0) {
    auto made = std::make_shared<Partition>(TopicPartition("payments", number), route_, 0);
    made->begin(beginning());
    return made;
  }
  // The next single message.
  int take() {
    Batch batch = *dispatcher_.take(1);
    held_.push_back(std::move(batch.works.front()));
    return held_.back().items.front().attempts;
  }
  Work give_back() {
    Work work = std::move(held_.back());
    held_.pop_back();
    return work;
  }

  void finish(Work work, std::size_t settled) {
    work.settled = settled;
    std::vector<Work> works;
    works.push_back(std::move(work));
    dispatcher_.finish(std::move(works));
  }

  flow::Route route_ = route();
  Dispatcher dispatcher_;
  std::vector<Work> held_;
};

TEST_F(DispatcherTest, RunsOneMessageOfAnOrderKeyAtATimeInOrder) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 7, item(2));
  dispatcher_.add(p, 8, item(3));
  EXPECT_TRUE(dispatcher_.has_ready());
  EXPECT_EQ(take(), 1);
  EXPECT_EQ(take(), 3);  // 2 waits for 1
  EXPECT_FALSE(dispatcher_.has_ready());
  Work three = give_back();
  finish(give_back(), 1);
  EXPECT_EQ(take(), 2);
  finish(std::move(three), 1);
}

TEST_F(DispatcherTest, ALaneGoesOnWithWhatIsReadyOrElseWithItsOwnOrderKey) {
  const auto p = partition();
  for (int i = 1; i <= 3; ++i) dispatcher_.add(p, 7, item(i));
  dispatcher_.add(p, 8, item(11));
  EXPECT_EQ(take(), 1);
  Work first = give_back();
  Work other = *dispatcher_.prefetch(first, Clock::now());
  EXPECT_EQ(other.items.front().attempts, 11) << "a hot key starves nobody";
  Work second = *dispatcher_.prefetch(first, Clock::now());
  EXPECT_EQ(second.items.front().attempts, 2);
  finish(std::move(first), 1);
  EXPECT_FALSE(dispatcher_.has_ready()) << "its lane has the second";
  finish(std::move(second), 1);
  EXPECT_EQ(take(), 3);
  EXPECT_FALSE(dispatcher_.prefetch(held_.back(), Clock::now()));
  EXPECT_EQ(p->dispatching.running, 2);
  finish(give_back(), 1);
  finish(std::move(other), 1);
  EXPECT_EQ(p->dispatching.running, 0);
}

TEST_F(DispatcherTest, WhatALaneDoesNotGoOnWithStaysInItsPlace) {
  const auto p = partition();
  for (int i = 1; i <= 3; ++i) dispatcher_.add(p, 7, item(i));
  EXPECT_EQ(take(), 1);
  Work first = give_back();
  Work second = *dispatcher_.prefetch(first, Clock::now());
  finish(std::move(second), 0);
  EXPECT_FALSE(dispatcher_.has_ready());
  finish(std::move(first), 0);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(take(), i);
    finish(give_back(), 1);
  }
}

TEST_F(DispatcherTest, ALaneGoesOnWithNothingInCautionOrOfARouteWithBatches) {
  const auto p = partition();
  for (int i = 1; i <= 2; ++i) dispatcher_.add(p, 7, item(i));
  EXPECT_EQ(take(), 1);
  dispatcher_.set_cautious({p});
  EXPECT_FALSE(dispatcher_.prefetch(held_.back(), Clock::now()));
  dispatcher_.set_cautious({});
  route_.batch = 10;
  EXPECT_FALSE(dispatcher_.prefetch(held_.back(), Clock::now()));
  route_.batch = 1;
  EXPECT_TRUE(dispatcher_.prefetch(held_.back(), Clock::now()));
}

TEST_F(DispatcherTest, AWaitingMessageHoldsItsOrderKeyAndNoOther) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 7, item(2));
  dispatcher_.add(p, 8, item(3));
  EXPECT_EQ(take(), 1);
  Work one = give_back();
  one.items.front().not_before = Clock::now() + milliseconds(30);
  finish(std::move(one), 0);
  EXPECT_EQ(take(), 3);
  EXPECT_EQ(take(), 1);  // comes back before 2, after its time
}

TEST_F(DispatcherTest, AMessageWithATimeOfItsOwnWaitsForItBehindTheOthersToo) {
  route_.batch = 10;
  const auto p = partition();
  const auto now = Clock::now();
  const auto later = now + milliseconds(100);
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 7, item(2, later));
  Batch batch = *dispatcher_.take_now(100, now);
  EXPECT_EQ(numbers(batch), (std::vector{1}));
  finish(std::move(batch.works.front()), 1);
  EXPECT_FALSE(dispatcher_.take_now(100, later - milliseconds(1)).has_value());
  EXPECT_EQ(numbers(*dispatcher_.take_now(100, later)), (std::vector{2}));
}

TEST_F(DispatcherTest, ReadyOrderKeysTakeTurns) {
  const auto p = partition();
  for (int i = 0; i < 3; ++i) dispatcher_.add(p, 7, item(i));
  dispatcher_.add(p, 8, item(10));
  EXPECT_EQ(take(), 0);
  finish(give_back(), 1);
  EXPECT_EQ(take(), 10);
}

TEST_F(DispatcherTest, DroppingAPartitionDropsItsQueueAndWaitsForWhatRuns) {
  const auto p = partition();
  const auto other = partition(1);
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 7, item(2));
  dispatcher_.add(p, 8, item(3, Clock::now() + milliseconds(10000)));
  dispatcher_.add(other, 7, item(4));
  EXPECT_EQ(take(), 1);
  dispatcher_.drop(*p);
  EXPECT_EQ(dispatcher_.load().queued, 1U);
  EXPECT_FALSE(dispatcher_.wait_idle({p}, Clock::now()));
  finish(give_back(), 1);
  EXPECT_TRUE(dispatcher_.wait_idle({p}, Clock::now()));
  EXPECT_EQ(take(), 4);
  dispatcher_.add(p, 9, item(5));  // too late: it is dropped
  EXPECT_EQ(dispatcher_.load().queued, 0U);
}

TEST_F(DispatcherTest, ARetryOfADroppedPartitionIsDroppedToo) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1));
  EXPECT_EQ(take(), 1);
  dispatcher_.drop(*p);
  finish(give_back(), 0);
  EXPECT_EQ(dispatcher_.load().queued, 0U);
  EXPECT_TRUE(dispatcher_.wait_idle({p}, Clock::now()));
}

// A message whose SQL takes PostgreSQL down ends the run of its partition with that, each time.
TEST_F(DispatcherTest, ConnectionsLostUnderAMessageAreKnownWhenItComesAgain) {
  const auto at = [](std::int64_t offset, int outages) {
    Message::Parts parts;
    parts.coordinates = {"payments", 0, offset};
    Item made;
    made.record = kafka::Record::copy(parts);
    made.outages = outages;
    return made;
  };
  const auto outages_of_next = [&] {
    take();
    return held_.back().items.front().outages;
  };
  auto p = partition();
  dispatcher_.add(p, 7, at(5, 0));
  dispatcher_.add(p, 8, at(6, 2));
  dispatcher_.add(p, 9, at(7, 0));
  EXPECT_EQ(outages_of_next(), 0);
  Work running = give_back();
  dispatcher_.drop(*p);
  running.items.front().outages = 1;
  finish(std::move(running), 0);

  p = partition();
  dispatcher_.add(p, 7, at(5, 0));
  EXPECT_EQ(outages_of_next(), 1);
  finish(give_back(), 1);
  dispatcher_.add(partition(1), 8, at(6, 0));
  EXPECT_EQ(outages_of_next(), 0) << "another partition's";
  dispatcher_.add(p, 9, at(7, 0));
  EXPECT_EQ(outages_of_next(), 0);
  dispatcher_.add(p, 8, at(6, 0));
  EXPECT_EQ(outages_of_next(), 0) << "what is behind it came, so that it was settled";
}

// PostgreSQL restarted under it. Its next announcement would count a crash that was none.
TEST_F(DispatcherTest, AnAnnouncementThatCouldNotBeWithdrawnIsKnownWhenTheMessageComesAgain) {
  const auto at_5 = [] {
    Message::Parts parts;
    parts.coordinates = {"payments", 0, 5};
    Item made;
    made.record = kafka::Record::copy(parts);
    return made;
  };
  auto p = partition();
  dispatcher_.add(p, 7, at_5());
  take();
  Work running = give_back();
  dispatcher_.drop(*p);
  running.items.front().announced = 7;
  finish(std::move(running), 0);
  p = partition();
  dispatcher_.add(p, 7, at_5());
  take();
  EXPECT_EQ(held_.back().items.front().announced, 7);
}

TEST_F(DispatcherTest, ABatchTakesWhatIsReadyOfOneRouteInOrder) {
  route_.batch = 3;
  flow::Route other_route = route();
  const auto p = partition();
  const auto other = std::make_shared<Partition>(TopicPartition("orders", 0), other_route, 1);
  other->begin(beginning());
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 7, item(2));
  dispatcher_.add(other, 7, item(3));
  dispatcher_.add(p, 8, item(4));
  EXPECT_EQ(numbers(*dispatcher_.take(100)), (std::vector{1, 2}));  // 3 is another route's
  EXPECT_EQ(numbers(*dispatcher_.take(100)), (std::vector{3}));
  EXPECT_EQ(numbers(*dispatcher_.take(100)), (std::vector{4}));
}

TEST_F(DispatcherTest, WhatABatchDidNotSettleComesBackInOrder) {
  route_.batch = 10;
  const auto p = partition();
  for (int i = 1; i <= 4; ++i) dispatcher_.add(p, 7, item(i));
  Batch batch = *dispatcher_.take(3);
  EXPECT_EQ(numbers(batch), (std::vector{1, 2, 3}));
  finish(std::move(batch.works.front()), 1);
  EXPECT_EQ(numbers(*dispatcher_.take(100)), (std::vector{2, 3, 4}));
}

TEST_F(DispatcherTest, CautiousRunsOneMessageInTheWholeProcess) {
  route_.batch = 10;
  const auto p = partition();
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 7, item(2));
  dispatcher_.add(p, 8, item(3));
  dispatcher_.set_cautious({p});
  Batch batch = *dispatcher_.take(100);
  EXPECT_TRUE(batch.cautious);
  EXPECT_EQ(numbers(batch), (std::vector{1}));
  std::thread lane([&] { EXPECT_EQ(numbers(*dispatcher_.take(100)).size(), 1U); });
  finish(std::move(batch.works.front()), 1);
  lane.join();
}

TEST_F(DispatcherTest, CautionRunsItsMessagesAloneAndInTurnsWithTheOthers) {
  const auto innocent = partition();
  const auto suspect = partition();
  for (int i = 1; i <= 40; ++i) dispatcher_.add(innocent, static_cast<std::uint64_t>(i), item(i));
  for (int i = 101; i <= 102; ++i) dispatcher_.add(suspect, static_cast<std::uint64_t>(i), item(i));
  EXPECT_EQ(take(), 1);
  dispatcher_.set_cautious({suspect});
  EXPECT_FALSE(dispatcher_.take_now(1, {})) << "1 still runs";
  finish(give_back(), 1);
  EXPECT_EQ(take(), 101);
  EXPECT_FALSE(dispatcher_.take_now(1, {})) << "2 would be blamed";
  finish(give_back(), 1);
  EXPECT_EQ(take(), 2);
  int others = 1;
  for (std::optional<Batch> batch; (batch = dispatcher_.take_now(1, {})); ++others)
    held_.push_back(std::move(batch->works.front()));
  EXPECT_GE(others, 8);
  EXPECT_LT(others, 39);
  while (!held_.empty()) finish(give_back(), 1);
  EXPECT_EQ(take(), 102);
}

TEST_F(DispatcherTest, CautionHoldsUpNoOtherWhileItsMessagesWait) {
  const auto innocent = partition();
  const auto suspect = partition();
  dispatcher_.set_cautious({suspect});
  dispatcher_.add(suspect, 7, item(1, Clock::now() + std::chrono::hours(1)));
  for (int i = 2; i <= 4; ++i) dispatcher_.add(innocent, static_cast<std::uint64_t>(i), item(i));
  EXPECT_EQ(take(), 2);
  EXPECT_EQ(take(), 3);
  EXPECT_TRUE(dispatcher_.prefetch(held_.back(), Clock::now()));
}

TEST_F(DispatcherTest, WhatWasTakenCautiouslyRunsAloneThoughCautionEnds) {
  const auto p = partition();
  dispatcher_.add(p, 7, item(1));
  dispatcher_.add(p, 8, item(2));
  dispatcher_.add(p, 9, item(3));
  dispatcher_.set_cautious({p});
  EXPECT_EQ(take(), 1);
  dispatcher_.set_cautious({});
  EXPECT_FALSE(dispatcher_.take_now(1, {})) << "it would be blamed where 2 ends the process";
  finish(give_back(), 1);
  EXPECT_EQ(take(), 2);
  EXPECT_EQ(take(), 3);
}

TEST_F(DispatcherTest, StopWakesEveryLane) {
  std::thread lane([&] { EXPECT_FALSE(dispatcher_.take(1).has_value()); });
  dispatcher_.stop();
  lane.join();
}

}  // namespace
}  // namespace hapax::worker
