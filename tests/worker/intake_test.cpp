// Records go to their order keys' queues, and the queue stays bounded.
#include "worker/intake.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

struct IntakeTest : PollGround {
  IntakeTest() {
    settings.queue = {.messages = 8, .bytes = std::size_t{1} << 20};
    settings.ordering = config::Ordering::partition;
  }

  std::shared_ptr<Partition> fetch(std::int32_t number, Beginning beginning = {}) {
    const auto partition = start(number, std::move(beginning));
    fetches.started(partition->id());
    fetches.turn();
    return partition;
  }
  // So many more messages of it.
  void receive(const std::shared_ptr<Partition>& partition, int count, std::size_t payload = 0) {
    for (; count > 0; --count)
      intake.receive(partition,
                     record(partition->id().second, partition->progress().next, payload));
  }

  config::Worker settings;
  std::function<void()> in_sleep = [] {};
  Fetches fetches{partitions, consumer, clock()};
  Intake intake{settings,
                partitions,
                dispatcher,
                fetches,
                {metrics.route("payments", "handler")},
                OrderHash(1, 2),
                clock(),
                [this](std::chrono::microseconds time) {
                  now += time;
                  in_sleep();
                }};
};

// Takes all that is queued, so that the dispatcher has nothing ready.
std::vector<Batch> take_all(Dispatcher& dispatcher, Clock::time_point now) {
  std::vector<Batch> taken;
  while (auto batch = dispatcher.take_now(1000, now)) taken.push_back(std::move(*batch));
  return taken;
}

TEST_F(IntakeTest, ARecordIsQueuedOnce) {
  const auto partition = fetch(0, {.same_topic = 9});
  intake.receive(partition, record(0, 0));
  intake.receive(partition, record(0, 0));
  EXPECT_EQ(partition->progress().messages, 1U);
  EXPECT_EQ(dispatcher.load().queued, 1U);
  EXPECT_EQ(partition->polling.leader_epoch, 7);
  EXPECT_EQ(partition->polling.last->offset, 0);
  EXPECT_EQ(partition->polling.last->same_topic, 9);
}

TEST_F(IntakeTest, ARecordEndsThatAPartitionIsRefusedOrAtItsEnd) {
  const auto partition = fetch(0);
  partition->polling.refused = "not allowed";
  intake.reached_end(*partition, 3);
  EXPECT_TRUE(partition->polling.at_end);
  EXPECT_EQ(partition->polling.refused, "");
  EXPECT_EQ(partition->progress().watermark, 3);
  partition->polling.refused = "not allowed";
  intake.receive(partition, record(0, 3));
  EXPECT_FALSE(partition->polling.at_end);
  EXPECT_EQ(partition->polling.refused, "");
}

TEST_F(IntakeTest, ARememberedMessageWaitsAsLongAsItDidBefore) {
  Beginning beginning;
  beginning.known.attempts[0] = {.count = 3, .wait_ms = 200};
  const auto partition = fetch(0, beginning);
  intake.receive(partition, record(0, 0));
  EXPECT_FALSE(dispatcher.take_now(1, now + milliseconds(199)));
  const auto batch = dispatcher.take_now(1, now + milliseconds(200));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->works.front().items.front().attempts, 3);
}

TEST_F(IntakeTest, OrdersByPartitionByKeyOrNotAtAll) {
  std::int32_t number = 0;
  const auto strands = [&](config::Ordering ordering) {
    settings.ordering = ordering;
    const auto partition = fetch(++number);
    for (const char* const key : {"a", "b", "a"})
      intake.receive(partition, kafka::Record::copy(Message::Parts{
                                    .coordinates = {"payments", number, partition->progress().next},
                                    .key = key}));
    std::size_t count = 0;
    std::vector<Batch> taken;
    while (auto batch = dispatcher.take_now(1, now)) {
      ++count;
      taken.push_back(std::move(*batch));
    }
    return count;
  };
  EXPECT_EQ(strands(config::Ordering::partition), 1U);
  EXPECT_EQ(strands(config::Ordering::key), 2U);
  EXPECT_EQ(strands(config::Ordering::none), 3U);
}

TEST_F(IntakeTest, OnePartitionMayFillTheQueueAndIsPausedThen) {
  const auto partition = fetch(0);
  fetch(1);
  receive(partition, 7);
  EXPECT_FALSE(partition->polling.paused);
  take_all(dispatcher, now);
  receive(partition, 1);
  EXPECT_TRUE(partition->polling.paused);
  EXPECT_FALSE(consumer.fetched.contains(id(0)));
  EXPECT_TRUE(consumer.fetched.contains(id(1)));
}

TEST_F(IntakeTest, APartitionWithinItsShareGoesOnWhileAnotherFillsTheQueue) {
  const auto greedy = fetch(0), modest = fetch(1);
  receive(greedy, 8);
  receive(modest, 3);
  EXPECT_FALSE(modest->polling.paused);
  receive(modest, 1);
  EXPECT_TRUE(modest->polling.paused);
}

TEST_F(IntakeTest, BytesFillTheQueueToo) {
  settings.queue.bytes = 10'000;
  const auto partition = fetch(0);
  receive(partition, 1, 5'000);
  EXPECT_FALSE(partition->polling.paused);
  receive(partition, 1, 5'000);
  EXPECT_TRUE(partition->polling.paused);
}

TEST_F(IntakeTest, WaitsForBusyLanesBeforeItPauses) {
  settings.ordering = config::Ordering::none;  // more is ready than lanes have taken
  const auto partition = fetch(0);
  in_sleep = [&] {
    settle(*partition, 0, record(0, 0)->bytes());
    in_sleep = [] {};
  };
  const auto before = now;
  receive(partition, 8);
  EXPECT_FALSE(partition->polling.paused);
  EXPECT_GT(now, before);
}

TEST_F(IntakeTest, WaitsForBusyLanesFiftyMillisecondsAtMost) {
  settings.ordering = config::Ordering::none;
  const auto partition = fetch(0);
  const auto before = now;
  receive(partition, 8);
  EXPECT_TRUE(partition->polling.paused);
  EXPECT_EQ(now - before, milliseconds(50));
}

TEST_F(IntakeTest, DoesNotWaitForLanesThatHaveNothingReady) {
  const auto partition = fetch(0);
  receive(partition, 1);
  const auto taken = take_all(dispatcher, now);
  const auto before = now;
  receive(partition, 7);
  EXPECT_TRUE(partition->polling.paused);
  EXPECT_EQ(now, before);
}

TEST_F(IntakeTest, GoesOnAtHalfOfItsShare) {
  const auto partition = fetch(0);
  receive(partition, 8);
  ASSERT_TRUE(partition->polling.paused);
  const std::size_t bytes = record(0, 0)->bytes();
  for (std::int64_t offset = 0; offset < 4; ++offset) settle(*partition, offset, bytes);
  intake.turn();
  EXPECT_TRUE(partition->polling.paused);
  settle(*partition, 4, bytes);
  intake.turn();
  EXPECT_FALSE(partition->polling.paused);
  EXPECT_TRUE(consumer.fetched.contains(id(0)));
}

TEST_F(IntakeTest, AtTwiceTheQueueAllArePausedUntilThereIsRoomAgain) {
  std::vector<std::shared_ptr<Partition>> filled;
  for (int number = 0; number < 9; ++number) filled.push_back(fetch(number));
  // Late records come though their partitions are paused.
  receive(filled[0], 15);
  EXPECT_TRUE(consumer.fetched.contains(id(8)));
  receive(filled[0], 1);
  EXPECT_TRUE(consumer.fetched.empty());
  EXPECT_TRUE(fetches.all_paused());
  const std::size_t bytes = record(0, 0)->bytes();
  settle(*filled[0], 0, bytes);
  intake.turn();
  settle(*filled[0], 1, bytes);
  intake.turn();
  EXPECT_TRUE(fetches.all_paused()) << "it went on at seven quarters of the queue";
  settle(*filled[0], 2, bytes);
  intake.turn();
  EXPECT_FALSE(fetches.all_paused());
  EXPECT_TRUE(consumer.fetched.contains(id(8)));
  EXPECT_TRUE(filled[0]->polling.paused);
}

// Else a lane that was slow for 50 ms would keep it paused until the retry has ended.
TEST_F(IntakeTest, APartitionThatTheQueueHasPausedGoesOnBehindARetry) {
  const auto partition = fetch(0);
  const std::size_t bytes = record(0, 0)->bytes();
  receive(partition, 1);  // waits for a retry
  for (std::int64_t offset = 1; offset < 60; ++offset) {
    receive(partition, 1);
    settle(*partition, offset, bytes);
  }
  receive(partition, 7);
  ASSERT_TRUE(partition->polling.paused);
  for (std::int64_t offset = 60; offset < 67; ++offset) settle(*partition, offset, bytes);
  intake.turn();
  EXPECT_FALSE(partition->polling.paused);
}

TEST_F(IntakeTest, APartitionTooFarAheadOfItsWatermarkIsPaused) {
  const auto partition = fetch(0);
  const std::size_t bytes = record(0, 0)->bytes();
  receive(partition, 1);  // waits for a retry
  for (std::int64_t offset = 1; offset < 79; ++offset) {
    receive(partition, 1);
    settle(*partition, offset, bytes);
    intake.turn();
  }
  EXPECT_FALSE(partition->polling.paused);
  receive(partition, 1);
  EXPECT_TRUE(partition->polling.paused);
  settle(*partition, 79, bytes);
  intake.turn();
  EXPECT_TRUE(partition->polling.paused) << "nothing is in hand, but it is still too far ahead";
  settle(*partition, 0, bytes);
  intake.turn();
  EXPECT_FALSE(partition->polling.paused);
}

}  // namespace
}  // namespace hapax::worker
