// The start table: Kafka's offset against the checkpoint, row by row.
#include "start_case.hpp"
#include "worker/watermark.hpp"

namespace hapax::worker {
namespace {

using namespace start_case;

TEST(Start, OursStartsAtTheCheckpointWhetherKafkaIsAheadOrBehind) {
  EXPECT_EQ(at(with(60, true, row(50))), (StartAt{50, false, 0}));
  EXPECT_EQ(at(with(40, true, row(50))), (StartAt{50, false, 0}));
}

TEST(Start, OursWithoutACheckpointHalts) {
  EXPECT_EQ(halt(with(60, true, std::nullopt)), "checkpoint_missing");
}

// A replica that had received the taking of a partition and nothing behind it was promoted.
TEST(Start, OursWhoseStartWasLostHaltsUnlessNothingWasSettledYet) {
  StartFacts all = with(60, true, row(std::nullopt));
  EXPECT_EQ(halt(all), "checkpoint_missing");
  all.provenance->first = true;
  EXPECT_EQ(at(all), (StartAt{60, false, 0, Jump::first_start}));
}

TEST(Start, AnotherStoreOfThisClusterWithoutACheckpointHalts) {
  StartFacts all = with(60, true, std::nullopt);
  all.provenance->store_id = "store-2";
  EXPECT_EQ(halt(all), "checkpoint_missing");
}

TEST(Start, AnotherStoreOfThisClusterBesideACheckpointHaltsUntilAnOperatorDecides) {
  StartFacts all = with(60, true, row(50));
  all.provenance->store_id = "store-2";
  EXPECT_EQ(halt(all), "other_store");
  all.row->start_as = "checkpoint";
  EXPECT_EQ(at(all), (StartAt{50, false, 0}));
}

// This store's worker had taken the partition and died. The group then worked on another store.
TEST(Start, AnotherStoreOfThisClusterBesideAPartitionThatWasOnlyTakenHaltsUntilAnOperatorDecides) {
  StartFacts all = with(60, true, row(std::nullopt));
  all.provenance->store_id = "store-2";
  EXPECT_EQ(halt(all), "checkpoint_missing");
  all.provenance->first = true;
  EXPECT_EQ(halt(all), "checkpoint_missing");
  all.row->start_as = "kafka";
  EXPECT_EQ(at(all), (StartAt{60, false, 0, Jump::decision}));
}

TEST(Start, AMirroredCommitIsForeign) {
  StartFacts all = with(60, true, std::nullopt);
  all.provenance->cluster_id = "cluster-2";
  EXPECT_EQ(at(all), (StartAt{60, false, 0, Jump::first_start}));
}

TEST(Start, AnOperatorsResetIsHonoured) {
  EXPECT_EQ(at(with(10, false, row(50))), (StartAt{10, false, 0, Jump::foreign_reset}));
  EXPECT_EQ(at(with(90, false, row(50))), (StartAt{90, false, 0, Jump::foreign_reset}));
  EXPECT_EQ(at(with(10, false, std::nullopt)), (StartAt{10, false, 0, Jump::first_start}));
}

TEST(Start, AnExpiredOffsetOfTheSameTopicStartsAtTheCheckpoint) {
  EXPECT_EQ(at(with(std::nullopt, false, row(50))), (StartAt{50, false, 0}));
}

TEST(Start, AnExpiredOffsetHaltsIfTheTopicCannotBeProvenTheSame) {
  StartFacts all = with(std::nullopt, false, row(50));
  all.topic_id = "";
  EXPECT_EQ(halt(all), "offset_unproven");
  all.topic_id = "topic-2";
  EXPECT_EQ(halt(all), "topic_recreated");
}

TEST(Start, TheFirstAssignmentStartsByPolicyAndIsCommittedFirst) {
  StartFacts all = with(std::nullopt, false, std::nullopt);
  EXPECT_EQ(at(all), (StartAt{0, true, 0, Jump::first_start}));
  all.initial_latest = true;
  EXPECT_EQ(at(all), (StartAt{100, true, 0, Jump::first_start}));
}

TEST(Start, AFirstAssignmentKilledHalfWayFindsItsWay) {
  EXPECT_EQ(at(with(std::nullopt, false, row(std::nullopt))),
            (StartAt{0, true, 0, Jump::first_start}));
  StartFacts committed = with(7, true, row(std::nullopt));
  committed.provenance->first = true;
  EXPECT_EQ(at(committed), (StartAt{7, false, 0, Jump::first_start}));
}

// With `latest` the end of the log has moved since the worker died.
TEST(Start, ANewLogsFirstStartKilledHalfWayGoesOnAtTheOffsetThatKafkaHas) {
  store::CheckpointRow decided = row(std::nullopt);
  decided.start_as = "initial";
  decided.generation = 2;
  StartFacts all = with(40, true, decided);
  all.initial_latest = true;
  EXPECT_EQ(first_generation(all), 2);
  EXPECT_EQ(at(all).offset, 100) << "that commit was of the log before";
  all.provenance->first = 1;
  EXPECT_EQ(at(all).offset, 100) << "and that one, too";
  all.provenance->first = 2;
  EXPECT_EQ(at(all).offset, 40);
  EXPECT_FALSE(at(all).first);
  all.low = 41;
  EXPECT_EQ(halt(all), "offset_out_of_range");
  all.low = 0;
  all.high = 39;
  EXPECT_EQ(at(all).offset, 39) << "the topic was made again once more";
  all.high = 100;
  all.provenance->store_id = "another";
  EXPECT_EQ(at(all).offset, 100);
}

TEST(Start, AnotherClusterHaltsWithAnyAnswerOfKafka) {
  StartFacts all = with(60, true, row(50));
  all.cluster_id = "cluster-2";
  EXPECT_EQ(halt(all), "other_cluster");
}

TEST(Start, ATopicUnderAnotherIdHalts) {
  StartFacts all = with(60, true, row(50));
  all.topic_id = "topic-2";
  EXPECT_EQ(halt(all), "topic_recreated");
}

TEST(Start, OutOfRangeHaltsOrCountsTheGap) {
  StartFacts all = with(10, true, row(10));
  all.low = 30;
  EXPECT_EQ(halt(all), "offset_out_of_range");
  all.earliest_when_out_of_range = true;
  EXPECT_EQ(at(all), (StartAt{30, false, 20, Jump::log_start}));
}

TEST(Start, ALogThatEndsBelowWhatWasReadOfItHalts) {
  StartFacts all = with(10, true, row(10));
  all.read_below = 100;
  EXPECT_EQ(at(all), (StartAt{10, false, 0}));
  all.read_below = 101;
  EXPECT_EQ(halt(all), "offset_above_end");
}

TEST(Start, AboveTheEndHaltsUnderEachPolicy) {
  StartFacts all = with(101, true, row(101));
  all.earliest_when_out_of_range = true;
  EXPECT_EQ(halt(all), "offset_above_end");
  all.row->next_offset = 100;
  EXPECT_EQ(at(all), (StartAt{100, false, 0}));
}

TEST(Start, AChangedKeySpecIsRefusedUnlessTheLastOwnerLeftDrained) {
  StartFacts all = with(50, true, row(50));
  all.key_spec = "spec-2";
  all.row->owner = "worker-1";
  EXPECT_EQ(halt(all), "key_spec_changed");
  all.row->owner.reset();
  all.row->highest_settled = 51;
  EXPECT_EQ(halt(all), "key_spec_changed");
  all.row->highest_settled = 50;
  EXPECT_EQ(at(all), (StartAt{50, false, 0}));
}

// N1 took the partition and has not begun; N2 joins.
TEST(Start, AChangedKeySpecIsLetInThoughAWorkerHasTakenTheDrainedPartitionMeanwhile) {
  StartFacts all = with(50, true, row(50));
  all.key_spec = "spec-2";
  all.row->owner = "worker-2";
  all.row->highest_settled = 50;
  EXPECT_EQ(at(all), (StartAt{50, false, 0}));
}

// The owner before died with messages settled up to 60; the next one leaves cleanly at 50.
TEST(Start, ACleanLeaveDoesNotHideWhatADeadOwnerSettledBeyondTheCheckpoint) {
  StartFacts all = with(50, true, row(50));
  all.high = 60;
  const Watermark unmoved(50, settled_before(all, at(all)));
  all.row->highest_settled = unmoved.highest_settled();
  all.key_spec = "spec-2";
  EXPECT_EQ(halt(all), "key_spec_changed");

  Watermark moved(50, settled_before(all, at(with(50, true, row(50)))));
  moved.pass(60);
  all.row->next_offset = moved.value();
  all.row->highest_settled = moved.highest_settled();
  all.committed = 60;
  EXPECT_EQ(at(all).offset, 60);
}

TEST(Start, AFirstStartHasNothingSettledBefore) {
  StartFacts all = with(std::nullopt, false, std::nullopt);
  all.high = 60;
  EXPECT_EQ(settled_before(all, {.offset = 10}), 10);
}

TEST(Start, AnOperatorsMoveDoesNotLetAChangedKeySpecIn) {
  for (const char* decided : {"checkpoint", "earliest"}) {
    StartFacts all = with(50, true, row(30));  // rewound
    all.row->highest = 50;
    all.row->owner = "worker-1";  // died with messages settled beyond 50
    all.row->start_as = decided;
    all.key_spec = "spec-2";
    EXPECT_EQ(halt(all), "key_spec_changed") << decided;
    all.row->key_spec = "";  // `accept`
    EXPECT_NE(halt(all), "key_spec_changed") << decided;
  }
}

TEST(Start, AnOperatorsMoveDoesNotLetAnotherTopicOrClusterIn) {
  for (const char* decided : {"checkpoint", "earliest"}) {
    StartFacts all = with(std::nullopt, false, row(50));
    all.row->start_as = decided;
    all.topic_id = "topic-2";
    EXPECT_EQ(halt(all), "topic_recreated") << decided;
    all.cluster_id = "cluster-2";
    EXPECT_EQ(halt(all), "other_cluster") << decided;
  }
}

TEST(Start, AnOperatorsDecisionIsFollowed) {
  StartFacts all = with(std::nullopt, false, row(50));
  all.topic_id = "topic-2";
  all.row->topic_id.reset();  // as `same_topic` leaves it
  all.row->start_as = "checkpoint";
  EXPECT_EQ(at(all), (StartAt{50, false, 0}));
  all.row->start_as = "earliest";
  all.low = 60;
  EXPECT_EQ(at(all), (StartAt{60, false, 10, Jump::decision}));  // ten are gone
  all.low = 20;
  all.row->start_as = "initial";
  EXPECT_EQ(at(all), (StartAt{20, true, 0, Jump::first_start}));
  all.row->start_as = "kafka";
  all.committed = 70;
  EXPECT_EQ(at(all), (StartAt{70, false, 0, Jump::decision}));
}

// The topic was made again, or the group's offsets expired, after the operator had decided.
TEST(Start, TheDecisionForKafkasOffsetHaltsIfKafkaHasNoneAnyMore) {
  StartFacts all = with(std::nullopt, false, row(std::nullopt));
  all.row->start_as = "kafka";
  EXPECT_EQ(halt(all), "offset_unproven");
  all.committed = 70;
  EXPECT_EQ(at(all), (StartAt{70, false, 0, Jump::decision}));
}

TEST(Start, ReadsAgainWhatWasReadBeforeUnlessAnOperatorDecidesThatItIsTheSame) {
  const ReadRecord seen{1, 41, 1000, 10};
  StartFacts all = with(42, true, row(42));
  all.row->last_record = "1/40/900";
  EXPECT_EQ(read_again(all, at(all), {seen}), (std::vector{ReadRecord{1, 40, 900, 0}, seen}));
  all.row->start_as = "checkpoint";  // an operator has moved it
  EXPECT_EQ(read_again(all, at(all), {seen}).size(), 2U);
  all.row->start_as.reset();
  all.row->last_record.reset();
  all.row->same_topic = 7;  // and every start after that one
  EXPECT_TRUE(read_again(all, at(all), {seen}).empty());
  all.row->last_record = "1/41/1100";
  ReadRecord since{1, 41, 1100, 10, 7};
  EXPECT_EQ(read_again(all, at(all), {seen, since}).size(), 2U) << "the row's and `since`";
}

TEST(Start, OnlyKeysOfCoordinatesAskForTheLogsNumber) {
  StartFacts all = with(50, true, row(50));
  all.scope = "booking";
  all.known_logs = {{"booking", kCluster, "topic-1", 2}};
  all.row->scope = "booking";
  EXPECT_EQ(at(all).generation, 1);
  all.key_may_be_coordinates = true;
  EXPECT_EQ(halt(all), "topic_recreated");
  all.row->start_as = "checkpoint";  // `same_topic`
  all.row->cluster_id.reset();
  all.row->topic_id.reset();
  EXPECT_EQ(at(all).generation, 2);
  EXPECT_EQ(at(all).guard_below, 100) << "what was settled beyond it has other keys";
}

TEST(Start, AHaltNamesBothFacts) {
  StartFacts all = with(60, true, row(50));
  all.cluster_id = "cluster-2";
  const auto decision = decide_start(all);
  const std::string detail = std::get<StartHalt>(decision).detail;
  EXPECT_NE(detail.find("cluster-1"), std::string::npos);
  EXPECT_NE(detail.find("cluster-2"), std::string::npos);
}

}  // namespace
}  // namespace hapax::worker
