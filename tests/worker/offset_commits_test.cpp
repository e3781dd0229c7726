// Kafka's offsets follow the checkpoints, and never hide that a topic was made again.
#include "worker/offset_commits.hpp"

#include "kafka/provenance.hpp"
#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

struct OffsetCommitsTest : PollGround {
  static Beginning with_id() {
    Beginning beginning;
    beginning.epoch = 3;
    beginning.topic_id = "an id";
    return beginning;
  }
  bool turn() {
    const bool may = commits.may_send();
    if (may) commits.send();
    return may;
  }
  void answer(kafka::CommitResult result) {
    const auto sent = *consumer.in_flight;
    consumer.in_flight.reset();
    commits.answered(sent, result, "");
  }
  std::int64_t sent_offset() const {
    return consumer.in_flight && !consumer.in_flight->empty() ? consumer.in_flight->front().offset
                                                              : -1;
  }

  OffsetCommits commits{partitions, consumer, keeper, metrics, clock()};
};

TEST_F(OffsetCommitsTest, CommitsTheCheckpointWithItsProvenance) {
  const auto partition = start(0, with_id());
  partition->polling.leader_epoch = 7;
  ASSERT_TRUE(partition->receive(0, 1));
  settle(*partition, 0, 1);  // the watermark is ahead of the checkpoint
  partition->checkpointed(12);
  ASSERT_TRUE(turn());
  const kafka::Commit expected{id(0), 12, 7, kafka::Provenance{"store", "cluster", 3}.text()};
  EXPECT_EQ(*consumer.in_flight, std::vector{expected});
}

TEST_F(OffsetCommitsTest, TellsHowFarPostgresWasIfThatIsKnown) {
  const auto partition = start(0, with_id());
  partition->saw({{2, 0xFF}, ""});
  ASSERT_TRUE(turn());
  EXPECT_EQ(kafka::Provenance::parse(consumer.in_flight->front().metadata)->wal, "2/0/FF");
}

// The worker has called, and no checkpoint has moved. The next owner must see if that is lost.
TEST_F(OffsetCommitsTest, TellsANewPositionOfPostgresOnceASecond) {
  const auto partition = start(0, with_id());
  partition->saw({{2, 0xFF}, ""});
  ASSERT_TRUE(turn());
  answer(kafka::CommitResult::done);
  now += std::chrono::seconds(1);
  EXPECT_FALSE(turn()) << "Kafka has it";
  partition->saw({{2, 0x100}, ""});
  now += milliseconds(990);
  EXPECT_FALSE(turn());
  now += milliseconds(10);
  ASSERT_TRUE(turn());
  EXPECT_EQ(sent_offset(), 0);
  EXPECT_EQ(kafka::Provenance::parse(consumer.in_flight->front().metadata)->wal, "2/0/100");
  answer(kafka::CommitResult::done);
  partition->saw({{2, 0x101}, ""});
  commits.send_last({partition});
  ASSERT_TRUE(consumer.in_flight);
  EXPECT_EQ(kafka::Provenance::parse(consumer.in_flight->front().metadata)->wal, "2/0/101");
}

TEST_F(OffsetCommitsTest, AFirstCommitIsDueAlsoAtOffsetZero) {
  start(0, with_id());
  ASSERT_TRUE(turn());
  EXPECT_EQ(sent_offset(), 0);
}

// Else Kafka would keep what the run before knew of PostgreSQL.
TEST_F(OffsetCommitsTest, AnAnswerToTheRunBeforeCountsForNothing) {
  start(0, with_id());
  ASSERT_TRUE(turn());
  Beginning again = with_id();
  again.epoch = 4;
  const auto partition = start(0, again);
  answer(kafka::CommitResult::done);
  EXPECT_NE(partition->committed(), 0);
}

TEST_F(OffsetCommitsTest, WhatIsCommittedIsNotDueAgain) {
  const auto partition = start(0, with_id());
  ASSERT_TRUE(turn());
  answer(kafka::CommitResult::done);
  EXPECT_EQ(partition->committed(), 0);
  now += std::chrono::seconds(1);
  EXPECT_FALSE(turn());
  partition->checkpointed(5);
  now += milliseconds(10);
  EXPECT_TRUE(turn());
}

TEST_F(OffsetCommitsTest, NothingIsDueWhileOneIsInFlight) {
  const auto partition = start(0, with_id());
  ASSERT_TRUE(turn());
  partition->checkpointed(5);
  now += std::chrono::seconds(1);
  EXPECT_FALSE(turn());
  answer(kafka::CommitResult::done);
  now += std::chrono::seconds(1);
  ASSERT_TRUE(turn());
  EXPECT_EQ(sent_offset(), 5);
}

TEST_F(OffsetCommitsTest, OneThatDidNotGetThroughIsSentAgainAfterHalfASecond) {
  for (const auto result :
       {kafka::CommitResult::later, kafka::CommitResult::dropped, kafka::CommitResult::fatal}) {
    partitions.clear();
    const auto partition = start(0, with_id());
    now += std::chrono::seconds(1);
    ASSERT_TRUE(turn());
    answer(result);
    EXPECT_EQ(partition->committed(), -1);
    now += milliseconds(499);
    EXPECT_FALSE(turn());
    now += milliseconds(1);
    EXPECT_TRUE(turn());
    answer(kafka::CommitResult::done);
  }
}

TEST_F(OffsetCommitsTest, LooksAtAllPartitionsOnceInTenMilliseconds) {
  EXPECT_FALSE(turn());
  start(0, with_id());
  now += milliseconds(9);
  EXPECT_FALSE(turn());
  now += milliseconds(1);
  EXPECT_TRUE(turn());
}

TEST_F(OffsetCommitsTest, WithoutTopicIdsWaitsForALookThatBeganAfterItWasDue) {
  start(0, with_id());
  start(1);
  keeper.looked_at = now;  // not after
  EXPECT_FALSE(turn());
  const auto due_since = now;
  now += milliseconds(10);
  EXPECT_FALSE(turn());
  EXPECT_EQ(keeper.look_wanted_since, due_since);
  keeper.looked_at = now;
  now += milliseconds(10);
  ASSERT_TRUE(turn());
  EXPECT_EQ(consumer.in_flight->size(), 2U);
}

TEST_F(OffsetCommitsTest, WithTopicIdsAsksForNoLook) {
  start(0, with_id());
  ASSERT_TRUE(turn());
  EXPECT_FALSE(keeper.look_wanted_since);
}

TEST_F(OffsetCommitsTest, LeavesOutWhatTheNoticesHaveStopped) {
  start(0, with_id());
  start(1, with_id());
  start(2, with_id());
  ASSERT_TRUE(commits.may_send());
  partitions.erase(id(0));
  partitions.at(id(2))->polling.started = false;  // its log is doubted: it starts again
  commits.send();
  ASSERT_EQ(consumer.in_flight->size(), 1U);
  EXPECT_EQ(consumer.in_flight->front().partition, id(1));
}

TEST_F(OffsetCommitsTest, LeavesOutWhatBeganAgainBelowIt) {
  start(0, with_id())->checkpointed(10);
  ASSERT_TRUE(commits.may_send());
  Beginning again = with_id();
  again.offset = 4;
  start(0, again);
  commits.send();
  EXPECT_FALSE(consumer.in_flight);
}

TEST_F(OffsetCommitsTest, AfterARevokeWhatIsDueIsReadAgain) {
  const auto partition = start(0);
  EXPECT_FALSE(turn());
  commits.forget_due();
  partition->checkpointed(8);
  keeper.looked_at = now + milliseconds(5);
  now += milliseconds(10);
  EXPECT_FALSE(turn()) << "a look from before counts for what became due after it";
  keeper.looked_at = now + milliseconds(5);
  now += milliseconds(10);
  ASSERT_TRUE(turn());
  EXPECT_EQ(sent_offset(), 8);
}

TEST_F(OffsetCommitsTest, TheLastCommitLeavesOutTopicsThatWereMadeAgain) {
  const auto kept = start(0), made_again = start(1), with = start(2, with_id());
  keeper.made_again = {id(1), id(2)};  // who has an id is not asked about
  commits.send_last({kept, made_again, with});
  ASSERT_EQ(consumer.in_flight->size(), 2U);
  EXPECT_EQ(consumer.in_flight->front().partition, id(0));
  EXPECT_EQ(consumer.in_flight->back().partition, id(2));
}

TEST_F(OffsetCommitsTest, TheLastCommitIsLeftOutIfKafkaDoesNotTell) {
  keeper.kafka_is_away = true;
  commits.send_last({start(0)});
  EXPECT_FALSE(consumer.in_flight);
}

TEST_F(OffsetCommitsTest, TheLastCommitHasNothingOfAPartitionThatNeverStarted) {
  const auto partition = start(0, with_id());
  partition->polling.started = false;
  commits.send_last_and_wait({partition}, now + std::chrono::seconds(1));
  EXPECT_TRUE(consumer.waited_for.empty());
}

TEST_F(OffsetCommitsTest, TheLastCommitIsNotWaitedForIfThereIsNoTimeLeft) {
  const auto partition = start(0, with_id());
  commits.send_last_and_wait({partition}, now);
  EXPECT_TRUE(consumer.waited_for.empty());
  commits.send_last_and_wait({partition}, now + milliseconds(1));
  EXPECT_EQ(consumer.waited_for.size(), 1U);
}

}  // namespace
}  // namespace hapax::worker
