// An error at an offset halts before anything behind it is received; a doubt starts again.
#include "worker/partition_errors.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

using Kind = kafka::PartitionError::Kind;

struct PartitionErrorsTest : PollGround {
  // Running, with offsets up to `next` received.
  std::shared_ptr<Partition> run(std::int32_t number, std::int64_t next, Beginning beginning = {}) {
    assignment.assigned({id(number)});
    const auto partition = partitions.at(id(number));
    beginning.offset = next;
    partition->begin(std::move(beginning));
    partition->polling.started = true;
    fetches.started(id(number));
    fetches.turn();
    return partition;
  }
  void fail(Kind kind, std::int64_t offset, std::int32_t number = 0) {
    errors.serve(kafka::PartitionError{kind, id(number), offset, "_NAME", "text"});
  }
  const store::Halt& halt() const { return keeper.halts.at(0).first; }

  std::vector<flow::Route> routes{route_of("payments")};
  std::string name = "worker";
  observe::Health health;
  Fetches fetches{partitions, consumer, clock()};
  Assignment assignment{routes, partitions, dispatcher, fetches, keeper, health, metrics};
  PartitionErrors errors{name, false, partitions, assignment, fetches, clock()};
};

TEST_F(PartitionErrorsTest, WhatCannotBeReadHaltsAtItsOffset) {
  run(0, 5);
  fail(Kind::unreadable, 8);
  EXPECT_EQ(halt().reason, "unreadable");
  EXPECT_EQ(halt().offset, 8);
  EXPECT_EQ(halt().halted_by, "worker");
  EXPECT_TRUE(partitions.empty());
}

TEST_F(PartitionErrorsTest, ABatchThatBeginsBelowTheNextOffsetHaltsAtTheNextOffset) {
  run(0, 5);
  fail(Kind::unreadable, 3);
  EXPECT_EQ(halt().offset, 5);
}

TEST_F(PartitionErrorsTest, WhatAnOperatorSkipsIsLeftOut) {
  Beginning beginning;
  beginning.known.unreadable = {8};
  run(0, 5, beginning);
  fail(Kind::unreadable, 8);
  EXPECT_TRUE(keeper.halts.empty());
  fail(Kind::unreadable_headers, 9);
  EXPECT_EQ(halt().offset, 9);
}

TEST_F(PartitionErrorsTest, AnErrorOfAFetchBeforeTheStartIsOnlyLogged) {
  run(0, 5)->polling.started = false;
  fail(Kind::unreadable, 8);
  EXPECT_TRUE(keeper.halts.empty());
}

TEST_F(PartitionErrorsTest, AnOffsetOutOfRangeIsAskedAboutOnceAMinuteAndHaltsThen) {
  run(0, 5);
  fail(Kind::out_of_range, 5);
  EXPECT_TRUE(keeper.halts.empty());
  EXPECT_EQ(keeper.acquired.back().second, std::chrono::seconds(3));
  EXPECT_EQ(partitions.at(id(0))->handover.read_below, 5);
  now += std::chrono::seconds(60);
  run(0, 5);
  fail(Kind::out_of_range, 5);
  EXPECT_TRUE(keeper.halts.empty());
  now += std::chrono::seconds(59);
  run(0, 5);
  fail(Kind::out_of_range, 5);
  EXPECT_EQ(halt().reason, "offset_out_of_range");
  EXPECT_EQ(halt().offset, 5);
}

TEST_F(PartitionErrorsTest, AnotherAssignmentAsksAboutAnOffsetOutOfRangeAgain) {
  run(0, 5);
  fail(Kind::out_of_range, 5);
  errors.forget(id(0));
  run(0, 5);
  fail(Kind::out_of_range, 5);
  EXPECT_TRUE(keeper.halts.empty());
}

TEST_F(PartitionErrorsTest, WithEarliestAnOffsetOutOfRangeNeverHalts) {
  PartitionErrors earliest{name, true, partitions, assignment, fetches, clock()};
  for (int i = 0; i < 3; ++i) {
    run(0, 5);
    earliest.serve(kafka::PartitionError{Kind::out_of_range, id(0), 5, "_NAME", "text"});
  }
  EXPECT_TRUE(keeper.halts.empty());
}

TEST_F(PartitionErrorsTest, ATopicThatIsGoneStartsAllOfItsPartitionsAgain) {
  const auto first = run(0, 5), second = run(1, 6);
  fail(Kind::gone, -1, -1);
  EXPECT_TRUE(first->over());
  EXPECT_TRUE(second->over());
  EXPECT_EQ(partitions.at(id(1))->handover.read_below, 6);
  EXPECT_TRUE(keeper.halts.empty());
}

TEST_F(PartitionErrorsTest, APartitionThatIsRefusedStaysAndIsAskedForAgain) {
  const auto partition = run(0, 5);
  fail(Kind::refused, -1);
  EXPECT_EQ(partition->polling.refused, "text");
  EXPECT_FALSE(partition->over());
  const int starts = consumer.starts;
  now += std::chrono::seconds(5);
  fetches.turn();
  EXPECT_EQ(consumer.starts, starts + 1);
}

TEST_F(PartitionErrorsTest, ADoubtAboutAnEarlierAssignmentStartsNothingAgain) {
  const auto before = run(0, 5);
  errors.serve(LogDoubted{before});
  EXPECT_TRUE(before->over());
  const auto current = run(0, 5);
  errors.serve(LogDoubted{before});
  EXPECT_FALSE(current->over());
}

struct RewrittenLogTest : PartitionErrorsTest {
  // Whether the log seems rewritten, if `before` was read and `found` comes first now.
  bool was_rewritten(std::int64_t before, std::size_t payload_before, std::int64_t found,
                     std::size_t payload) {
    const auto partition = run(0, 3);
    const auto old = record(0, before, payload_before);
    partition->handover.read_before = {
        ReadRecord{1, before, store::timestamp_ms(old->message()), old->bytes()}};
    return errors.log_was_rewritten(partition, *record(0, found, payload));
  }
};

TEST_F(RewrittenLogTest, TheSameRecordIsNoRewrite) {
  EXPECT_FALSE(was_rewritten(2, 10, 2, 10));
  EXPECT_TRUE(partitions.at(id(0))->handover.read_before.empty());
}

TEST_F(RewrittenLogTest, AnotherRecordAtItsOffsetHalts) {
  EXPECT_TRUE(was_rewritten(2, 10, 2, 11));
  EXPECT_EQ(halt().reason, "offset_above_end");
  EXPECT_EQ(halt().offset, 2);
  EXPECT_TRUE(partitions.empty());
}

TEST_F(RewrittenLogTest, ACompactedRecordIsNoRewrite) {
  EXPECT_FALSE(was_rewritten(2, 10, 3, 11));
  EXPECT_TRUE(partitions.at(id(0))->handover.read_before.empty());
}

// A marker of a transaction may stand at the offset in a topic that was made again.
TEST_F(RewrittenLogTest, AMissingRecordHaltsIfTheLogSeemedTooShort) {
  const auto partition = run(0, 3);
  partition->handover.short_since = Clock::now();
  partition->handover.read_before = {ReadRecord{1, 2, 0, 10}};
  EXPECT_TRUE(errors.log_was_rewritten(partition, *record(0, 3, 10)));
  EXPECT_EQ(halt().reason, "offset_above_end");
}

TEST_F(RewrittenLogTest, AMissingRecordHaltsIfTheTopicSeemedGone) {
  errors.serve(LogDoubted{run(0, 3)});
  const auto again = run(0, 3);
  again->handover.read_before = {ReadRecord{1, 2, 0, 10}};
  EXPECT_TRUE(errors.log_was_rewritten(again, *record(0, 3, 10)));
}

TEST_F(RewrittenLogTest, AnEarlierRecordLeavesTheQuestionOpen) {
  EXPECT_FALSE(was_rewritten(2, 10, 1, 11));
  EXPECT_EQ(partitions.at(id(0))->handover.read_before.size(), 1U);
}

TEST_F(RewrittenLogTest, ACompactedRecordBelowOneThatStandsThereIsNoRewrite) {
  const auto partition = run(0, 3);
  partition->handover.short_since = Clock::now();
  const auto found = record(0, 4, 10);
  partition->handover.read_before = {{1, 2, 0, 0},
                                     {1, 4, store::timestamp_ms(found->message()), found->bytes()}};
  EXPECT_FALSE(errors.log_was_rewritten(partition, *found));
}

// An operator may have skipped it, or a retention of the log have left it.
TEST_F(RewrittenLogTest, WhatCannotBeReadBelowTheStartIsPassedBy) {
  const auto partition = run(0, 5);
  partition->handover.read_before = {{1, 2, 0, 0}};
  fail(Kind::unreadable, 3);
  EXPECT_TRUE(keeper.halts.empty());
  EXPECT_FALSE(partition->over());
  fetches.turn();
  EXPECT_EQ(consumer.fetched.at(id(0)), 5);
  fail(Kind::unreadable, 3);
  EXPECT_EQ(halt().offset, 5) << "its batch reaches beyond the start";
}

// Its size in memory may be another one in the next build.
TEST_F(RewrittenLogTest, ARecordWithoutASizeIsComparedByItsTimestamp) {
  const auto partition = run(0, 3);
  const auto found = record(0, 2, 10);
  const auto time = store::timestamp_ms(found->message());
  partition->handover.read_before = {{1, 2, time, 0}};
  EXPECT_FALSE(errors.log_was_rewritten(partition, *found));
  partition->handover.read_before = {{1, 2, time.value_or(0) + 1, 0}};
  EXPECT_TRUE(errors.log_was_rewritten(partition, *found));
}

// The last below the checkpoint, and the last that this process read.
TEST_F(RewrittenLogTest, TheSecondOfTwoRecordsHaltsIfItIsAnotherOne) {
  const auto partition = run(0, 3);
  const auto first = record(0, 2, 10);
  const auto read = ReadRecord{1, 2, store::timestamp_ms(first->message()), first->bytes()};
  partition->handover.read_before = {read, {1, 4, 0, 10}};
  EXPECT_FALSE(errors.log_was_rewritten(partition, *first));
  EXPECT_FALSE(errors.log_was_rewritten(partition, *record(0, 3, 10)));
  EXPECT_TRUE(errors.log_was_rewritten(partition, *record(0, 4, 11)));
  EXPECT_EQ(halt().reason, "offset_above_end");
}

}  // namespace
}  // namespace hapax::worker
