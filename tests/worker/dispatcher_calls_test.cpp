// Messages of a route that calls to the outside, beside those of another route.
#include <gtest/gtest.h>

#include <future>

#include "worker/dispatcher.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;

struct DispatcherCalls : testing::Test {
  DispatcherCalls() { calling_.outside = config::Outside{}; }

  static std::shared_ptr<Partition> partition_of(const flow::Route& route, std::int32_t number) {
    auto made = std::make_shared<Partition>(TopicPartition("payments", number), route, 0);
    Beginning beginning;
    beginning.epoch = 1;
    made->begin(beginning);
    return made;
  }
  Dispatcher::Calls take_calls() {
    return dispatcher_.take_calls([](std::size_t) { return 10U; });
  }
  void finish(std::vector<Work> works) {
    for (Work& work : works) work.settled = 1;
    dispatcher_.finish(std::move(works));
  }

  flow::Route calling_, booking_;
  const std::shared_ptr<Partition> calls_ = partition_of(calling_, 0);
  const std::shared_ptr<Partition> books_ = partition_of(booking_, 1);
  Dispatcher dispatcher_;
};

TEST_F(DispatcherCalls, AreNotForLanesUntilTheyNeedNoCall) {
  dispatcher_.add(calls_, 1, {});
  EXPECT_FALSE(dispatcher_.take_now(1, Clock::now()));
  Dispatcher::Calls calls = take_calls();
  ASSERT_EQ(calls.works.size(), 1U);
  calls.works.front().items.front().for_lane = true;
  dispatcher_.finish(std::move(calls.works));
  EXPECT_TRUE(take_calls().works.empty());
  EXPECT_TRUE(dispatcher_.take_now(1, Clock::now()));
}

TEST_F(DispatcherCalls, ThatCannotBeMadeHoldNoLaneUpInCaution) {
  dispatcher_.set_cautious({calls_});
  dispatcher_.let_calls_run(false);
  dispatcher_.add(calls_, 1, {});
  for (int turn = 0; turn < 100; ++turn) {
    dispatcher_.add(books_, 2, {});
    std::optional<Batch> batch = dispatcher_.take_now(1, Clock::now());
    ASSERT_TRUE(batch) << "after " << turn << " messages a lane waits for the suspect";
    finish(std::move(batch->works));
  }
  EXPECT_TRUE(dispatcher_.has_ready()) << "it is not lost";
}

TEST_F(DispatcherCalls, ThatCanBeMadeAgainAreMadeAloneInCaution) {
  dispatcher_.set_cautious({calls_});
  dispatcher_.let_calls_run(false);
  dispatcher_.add(calls_, 1, {});
  dispatcher_.let_calls_run(true);
  const Dispatcher::Calls calls = take_calls();
  ASSERT_EQ(calls.works.size(), 1U);
  EXPECT_TRUE(calls.cautious);
  dispatcher_.add(books_, 2, {});
  EXPECT_FALSE(dispatcher_.take_now(1, Clock::now())) << "it is not alone";
}

// The answers of suspects fill the room of the calls, and only lanes make room again.
TEST_F(DispatcherCalls, WithoutRoomHoldNoSuspectOfALaneUp) {
  const auto others = partition_of(calling_, 2);
  dispatcher_.set_cautious({calls_});
  for (const std::uint64_t order_key : {1, 2}) {
    Item answered;
    answered.for_lane = true;
    dispatcher_.add(calls_, order_key, std::move(answered));
  }
  std::optional<Batch> batch = dispatcher_.take_now(1, Clock::now());
  ASSERT_TRUE(batch);
  finish(std::move(batch->works));
  dispatcher_.add(others, 3, {});
  EXPECT_TRUE(dispatcher_.take_calls([](std::size_t) { return 0U; }).works.empty());
  batch = dispatcher_.take_now(1, Clock::now());
  ASSERT_TRUE(batch) << "nothing runs, and nothing ever will";
  EXPECT_TRUE(batch->cautious);
  finish(std::move(batch->works));
  EXPECT_EQ(take_calls().works.size(), 1U) << "the others have their turns again";
}

// The second message of an order key is called once the first is booked.
TEST_F(DispatcherCalls, WithAnswersAreBookedTogetherOneOfEachOrderKey) {
  calling_.batch = 10;
  for (const std::uint64_t order_key : {1, 2}) {
    Item answered;
    answered.for_lane = true;
    dispatcher_.add(calls_, order_key, std::move(answered));
    dispatcher_.add(calls_, order_key, {});
  }
  std::optional<Batch> batch = dispatcher_.take_now(10, Clock::now());
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->works.size(), 2U);
  for (const Work& work : batch->works) EXPECT_EQ(work.items.size(), 1U);
  EXPECT_TRUE(take_calls().works.empty());
  finish(std::move(batch->works));
  EXPECT_EQ(take_calls().works.size(), 2U);
}

// PostgreSQL is away, so what is due is not taken. Its thread must not turn round and round.
TEST_F(DispatcherCalls, ThatAreDueAndNotTakenLetTheirThreadWait) {
  Item due;
  due.not_before = Clock::now() - milliseconds(1);
  dispatcher_.add(calls_, 1, std::move(due));
  const auto wait = [&] { dispatcher_.wait_for_calls(Clock::now() + std::chrono::hours(1)); };
  wait();  // it is there
  auto waiting = std::async(std::launch::async, wait);
  EXPECT_EQ(waiting.wait_for(milliseconds(50)), std::future_status::timeout);
  dispatcher_.wake_calls();
  waiting.get();
}

}  // namespace
}  // namespace hapax::worker
