// A partition that is halted, fenced or doubted is dropped, and comes again as a new one.
#include "worker/assignment.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

struct AssignmentTest : PollGround {
  std::shared_ptr<Partition> run(const TopicPartition& which) {
    EXPECT_TRUE(assignment.assigned({which}).empty());
    return begin(which);
  }
  std::shared_ptr<Partition> begin(const TopicPartition& which) {
    const auto partition = partitions.at(which);
    partition->begin({.epoch = 7});
    partition->polling.started = true;
    fetches.started(which);
    fetches.turn();
    return partition;
  }
  static HaltWanted halt_of(const std::shared_ptr<Partition>& partition, bool whole_route = false) {
    store::Halt halt;
    halt.topic = partition->id().first;
    halt.partition = partition->id().second;
    halt.whole_route = whole_route;
    halt.reason = "unreadable";
    return {partition, halt, false};
  }

  std::vector<flow::Route> routes{route_of("payments"), route_of("orders")};
  observe::Health health;
  Fetches fetches{partitions, consumer, clock()};
  Assignment assignment{routes, partitions, dispatcher, fetches, keeper, health, metrics};
};

TEST_F(AssignmentTest, ATopicWithoutARouteIsNotTaken) {
  const TopicPartition other("refunds", 0);
  EXPECT_EQ(assignment.assigned({id(0), other}), std::vector{other});
  ASSERT_EQ(keeper.acquired.size(), 1U);
  EXPECT_EQ(keeper.acquired[0].first, partitions.at(id(0)));
  EXPECT_EQ(keeper.acquired[0].second, milliseconds(0));
}

TEST_F(AssignmentTest, APartitionThatComesBackKnowsItsLastRecord) {
  const auto partition = run(id(0));
  partition->polling.last = ReadRecord{1, 41, {}, 10};
  partition->saw({{1, 0xFF}, "run"});
  assignment.revoked(id(0));
  EXPECT_TRUE(partition->over());
  EXPECT_TRUE(partitions.empty());
  assignment.assigned({id(0)});
  EXPECT_EQ(partitions.at(id(0))->handover.read_before, std::vector{*partition->polling.last});
  // The start looks whether another worker has started it meanwhile.
  EXPECT_EQ(partitions.at(id(0))->handover.seen_wal,
            (SeenWal{{1, 0xFF}, "run", partition->beginning().epoch}));
  assignment.revoked(id(0));  // before it has started
  assignment.assigned({id(0)});
  EXPECT_EQ(partitions.at(id(0))->handover.seen_wal,
            (SeenWal{{1, 0xFF}, "run", partition->beginning().epoch}));
}

TEST_F(AssignmentTest, APartitionThatStartsAgainKnowsHowFarPostgresWas) {
  const auto partition = run(id(0));
  partition->saw({{1, 0xFF}, "run"});
  assignment.start_again(partition, {});
  EXPECT_EQ(partitions.at(id(0))->handover.seen_wal, (SeenWal{{1, 0xFF}, "run"}));
}

// Behind a skip they do not come again, and later ones of their keys would overtake them.
TEST_F(AssignmentTest, AStartWaitsForWhatStillRunsOfThePartition) {
  const auto partition = run(id(0));
  run(id(1));
  dispatcher.add(partition, 1, {});
  auto running = dispatcher.take_now(1, now);
  ASSERT_TRUE(running);
  assignment.fenced({partition, false});
  assignment.turn();
  ASSERT_EQ(keeper.acquired.size(), 2U);
  assignment.fenced({partitions.at(id(0)), false});  // moved once more meanwhile
  assignment.start_again(partitions.at(id(1)), {});
  EXPECT_EQ(keeper.acquired.size(), 3U) << "nothing of that one runs";
  dispatcher.finish(std::move(running->works));
  assignment.turn();
  ASSERT_EQ(keeper.acquired.size(), 4U);
  EXPECT_EQ(keeper.acquired[3].first, partitions.at(id(0)));
}

TEST_F(AssignmentTest, AStartThatWaitedIsNoneIfThePartitionWasTakenAway) {
  const auto partition = run(id(0));
  dispatcher.add(partition, 1, {});
  auto running = dispatcher.take_now(1, now);
  assignment.start_again(partition, {});
  assignment.revoked(id(0));
  dispatcher.finish(std::move(running->works));
  assignment.turn();
  EXPECT_EQ(keeper.acquired.size(), 1U);
}

TEST_F(AssignmentTest, AHaltStopsOnePartitionAndIsRecorded) {
  const auto partition = run(id(0));
  run(id(1));
  assignment.halt(halt_of(partition));
  EXPECT_TRUE(partition->over());
  EXPECT_FALSE(partitions.contains(id(0)));
  EXPECT_FALSE(consumer.fetched.contains(id(0)));
  EXPECT_TRUE(partitions.contains(id(1)));
  EXPECT_TRUE(assignment.halted().contains(id(0)));
  ASSERT_EQ(keeper.halts.size(), 1U);
  EXPECT_FALSE(keeper.halts[0].second);
  EXPECT_EQ(keeper.halts[0].first.epoch, 7);
}

TEST_F(AssignmentTest, AHaltOfARouteStopsAllOfItsPartitionsAndIsRecordedOnce) {
  const auto partition = run(id(0));
  run(id(1));
  run({"orders", 0});
  assignment.halt(halt_of(partition, true));
  EXPECT_EQ(partitions.size(), 1U);
  EXPECT_EQ(assignment.halted().size(), 2U);
  EXPECT_EQ(std::ranges::count(keeper.halts, false, &std::pair<store::Halt, bool>::second), 1);
}

TEST_F(AssignmentTest, AHaltOfAnEarlierAssignmentStopsNothing) {
  const auto before = run(id(0));
  assignment.start_again(before, {});
  assignment.halt(halt_of(before));
  EXPECT_TRUE(partitions.contains(id(0)));
  EXPECT_TRUE(keeper.halts.empty());
}

TEST_F(AssignmentTest, AHaltOfARouteStandsAlsoIfItsPartitionIsGone) {
  const auto gone = run(id(0));
  assignment.revoked(id(0));
  assignment.halt(halt_of(gone, true));
  ASSERT_EQ(keeper.halts.size(), 1U);
  EXPECT_FALSE(keeper.halts[0].second);
  EXPECT_EQ(keeper.halts[0].first.epoch, 7);
}

TEST_F(AssignmentTest, APartitionIsTakenAgainOnceWhenItsHaltEnds) {
  assignment.halt(halt_of(run(id(0))));
  assignment.halt_ended({id(0)});
  EXPECT_EQ(keeper.acquired.size(), 2U);
  EXPECT_TRUE(partitions.contains(id(0)));
  assignment.halt_ended({id(0)});
  EXPECT_EQ(keeper.acquired.size(), 2U);
}

TEST_F(AssignmentTest, ARevokedPartitionIsNotTakenWhenItsHaltEnds) {
  assignment.halt(halt_of(run(id(0))));
  assignment.revoked(id(0));
  assignment.halt_ended({id(0)});
  EXPECT_TRUE(partitions.empty());
}

TEST_F(AssignmentTest, AFencedPartitionStartsAgainLaterIfAnotherWorkerHasIt) {
  const auto partition = run(id(0));
  assignment.fenced({partition, true});
  EXPECT_TRUE(partition->over());
  EXPECT_EQ(keeper.acquired.back().second, milliseconds(3000));
  assignment.fenced({begin(id(0)), false});
  EXPECT_EQ(keeper.acquired.back().second, milliseconds(0));
  assignment.fenced({partition, false});
  EXPECT_EQ(keeper.acquired.size(), 3U) << "an earlier assignment was fenced";
}

TEST_F(AssignmentTest, TheLogMustHoldWhatWasReadOfAPartitionThatStartsAgain) {
  const auto partition = run(id(0));
  ASSERT_TRUE(partition->receive(6, 1));
  assignment.start_again(partition, milliseconds(70));
  EXPECT_TRUE(partition->over());
  EXPECT_EQ(partitions.at(id(0))->handover.read_below, 7);
  EXPECT_EQ(keeper.acquired.back().second, milliseconds(70));
}

TEST_F(AssignmentTest, DropReturnsWhatIsNotHaltedAndForgetsItsPause) {
  const auto kept = run(id(0)), halted = run(id(1));
  fetches.pause(*kept);
  assignment.halt(halt_of(halted));
  EXPECT_EQ(assignment.drop({id(0), id(1)}), std::vector{kept});
  EXPECT_TRUE(kept->over());
  EXPECT_EQ(fetches.paused(), 0U);
}

}  // namespace
}  // namespace hapax::worker
