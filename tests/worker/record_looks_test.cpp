// A look before the start: it fetches one record, tells what stands there, and runs nothing.
#include "worker/record_looks.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

using Kind = kafka::PartitionError::Kind;

struct RecordLooksTest : PollGround {
  // Assigned, and not started.
  std::shared_ptr<Partition> look(std::int32_t number, ReadRecord record) {
    auto partition = std::make_shared<Partition>(id(number), route, 0);
    partitions[partition->id()] = partition;
    looks.begin({partition, record});
    fetches.turn();
    return partition;
  }
  void fail(Kind kind, std::int32_t number) {
    looks.serve(kafka::PartitionError{kind, id(number), -1, "_NAME", "text"});
  }

  Fetches fetches{partitions, consumer, clock()};
  RecordLooks looks{partitions, fetches, keeper, clock()};
};

TEST_F(RecordLooksTest, TellWhatStandsAtTheOffsetAndFetchNoMore) {
  const auto partition = look(0, {1, 40, 1000, 0});
  EXPECT_EQ(consumer.fetched.at(id(0)), 40);
  looks.serve(*record(0, 39));
  EXPECT_TRUE(keeper.acquired.empty());
  looks.serve(*record(0, 40));
  EXPECT_TRUE(consumer.fetched.empty());
  ASSERT_EQ(keeper.acquired.size(), 1U);
  EXPECT_EQ(keeper.acquired[0].first, partition);
  ASSERT_TRUE(partition->handover.look.has_value());
  EXPECT_TRUE(partition->handover.look->is_another()) << "it has another timestamp";
  looks.serve(*record(0, 41));
  EXPECT_EQ(keeper.acquired.size(), 1U) << "it was told twice";
}

TEST_F(RecordLooksTest, ProveNothingIfTheRecordIsGone) {
  for (const bool is_end : {false, true}) {
    const auto partition = look(0, {1, 40, 1000, 0});
    if (is_end) {
      looks.serve(kafka::EndOfPartition{id(0), 42});
    } else {
      looks.serve(*record(0, 41));
    }
    ASSERT_TRUE(partition->handover.look.has_value());
    EXPECT_FALSE(partition->handover.look->is_another());
  }
  fail(Kind::unreadable, 0);
  EXPECT_EQ(keeper.acquired.size(), 2U);
}

TEST_F(RecordLooksTest, TakeNothingThatWasFetchedBefore) {
  auto partition = std::make_shared<Partition>(id(0), route, 0);
  partitions[id(0)] = partition;
  looks.serve(*record(0, 40));
  looks.begin({partition, {1, 40, {}, 0}});
  looks.serve(*record(0, 41));
  EXPECT_TRUE(keeper.acquired.empty());
  fetches.turn();
  EXPECT_EQ(consumer.fetched.at(id(0)), 40);
}

TEST_F(RecordLooksTest, OfALogThatHasChangedAskForTheStartAgain) {
  const auto first = look(0, {1, 40, {}, 0}), second = look(1, {1, 50, {}, 0});
  fail(Kind::gone, -1);
  EXPECT_EQ(keeper.acquired.size(), 2U);
  EXPECT_FALSE(first->handover.look || second->handover.look);
  EXPECT_TRUE(consumer.fetched.empty());
}

TEST_F(RecordLooksTest, ThatKafkaRefusesAreAskedAgainAndTell) {
  const auto partition = look(0, {1, 40, {}, 0});
  fail(Kind::refused, 0);
  EXPECT_EQ(partition->delayed(), "text");
  const int starts = consumer.starts;
  now += std::chrono::seconds(5);
  fetches.turn();
  EXPECT_EQ(consumer.starts, starts + 1);
  looks.serve(*record(0, 40));
  EXPECT_EQ(keeper.acquired.size(), 1U);
}

// A second look was still open. Fetched from there, all records below would be left out.
TEST_F(RecordLooksTest, EndOnceTheStartIsAgreed) {
  const auto partition = look(0, {1, 40, {}, 0});
  Beginning beginning;
  beginning.offset = 7;
  partition->begin(std::move(beginning));
  partition->polling.started = true;
  fetches.started(id(0));
  fetches.turn();
  EXPECT_EQ(consumer.fetched.at(id(0)), 7);
  looks.serve(*record(0, 40));
  EXPECT_TRUE(keeper.acquired.empty());
}

TEST_F(RecordLooksTest, AreForgottenWithTheirAssignment) {
  const auto partition = look(0, {1, 40, {}, 0});
  partition->end();
  looks.serve(*record(0, 40));
  EXPECT_TRUE(keeper.acquired.empty());
  looks.begin({partition, {1, 40, {}, 0}});
  fetches.turn();
  EXPECT_EQ(consumer.starts, 1);
}

}  // namespace
}  // namespace hapax::worker
