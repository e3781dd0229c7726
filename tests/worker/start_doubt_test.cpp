// Partitions of routes that call to the outside: when calls are in doubt at a start, and which.
#include "start_case.hpp"

namespace hapax::worker {
namespace {

using namespace start_case;

// Of a route that calls to the outside, with the checkpoint at 50 and the log's end at 100.
StartFacts calling(config::Repeat repeat, const char* seen, const char* now) {
  StartFacts all = with(50, true, row(50));
  all.repeat = repeat;
  all.provenance->wal = seen;
  all.wal = store::WalPosition::parse(now);
  return all;
}

TEST(Start, OnlyALostTailPutsCallsInDoubt) {
  struct Row {
    const char* seen;
    const char* now;
    bool is_in_doubt;
  };
  for (const Row& row :
       {Row{"1/0/FF", "1/0/FF", false}, Row{"1/0/FF", "1/1/0", false}, Row{"1/1/0", "1/0/FF", true},
        Row{"1/0/FF", "2/0/FF", true}, Row{"2/0/1", "1/0/FF", true}, Row{"", "1/0/1", false},
        Row{"1/0/FF", "", false}, Row{"what?", "1/0/1", false}, Row{"a/1/0/FF", "a/1/1/0", false},
        Row{"a/1/0/FF", "b/1/1/0", true}, Row{"1/0/FF", "a/1/1/0", false}}) {
    SCOPED_TRACE(std::string(row.seen) + " → " + row.now);
    for (const auto repeat : {config::Repeat::idempotent, config::Repeat::queryable})
      EXPECT_EQ(at(calling(repeat, row.seen, row.now)).doubt_below, row.is_in_doubt ? 100 : 0);
    const StartFacts never = calling(config::Repeat::never, row.seen, row.now);
    EXPECT_EQ(halt(never), row.is_in_doubt ? "tail_in_doubt" : "started");
    StartFacts here = never;  // Kafka's offset tells an older position than this process saw
    here.provenance->wal = "";
    here.seen_wal = store::WalPosition::parse(row.seen);
    EXPECT_EQ(halt(here), halt(never));
  }
}

TEST(Start, TheNewestPositionThatWasSeenCounts) {
  StartFacts all = calling(config::Repeat::queryable, "2/0/5", "2/0/6");
  all.seen_wal = store::WalPosition{1, 9};  // before the partition was another's
  EXPECT_EQ(at(all).doubt_below, 0);
  all.seen_wal = store::WalPosition{2, 7};
  EXPECT_EQ(at(all).doubt_below, 100);
}

// Other partitions have written on, while this one waited for its calls to end.
TEST(Start, WhatPostgresWroteSinceItCameBackHidesNoLoss) {
  StartFacts all = calling(config::Repeat::never, "1/0/10", "1/0/30");
  all.seen_wal = store::WalPosition{1, 0x20};
  all.began_wal = store::WalPosition{1, 0x1F};
  EXPECT_EQ(halt(all), "started");
  all.was_seen_before = true;
  EXPECT_EQ(halt(all), "tail_in_doubt");
  all.began_wal = store::WalPosition{1, 0x20};
  EXPECT_EQ(halt(all), "started");
  all.provenance->wal = "1/0/28";  // another worker has had it meanwhile
  EXPECT_EQ(halt(all), "started");
}

// The worker that told Kafka is gone. No run of the partition has begun since PostgreSQL came back.
TEST(Start, WhatPostgresWroteSinceItCameBackHidesNoLossFromTheNextOwner) {
  StartFacts all = calling(config::Repeat::never, "1/0/20", "1/0/30");
  all.began_wal = store::WalPosition{1, 0x1F};
  all.row->is_of_earlier_run = true;
  EXPECT_EQ(halt(all), "tail_in_doubt");
  StartFacts kept = all;
  kept.began_wal = store::WalPosition{1, 0x20};
  EXPECT_EQ(halt(kept), "started");
  StartFacts begun = all;  // it told Kafka behind PostgreSQL's return
  begun.row->is_of_earlier_run = false;
  EXPECT_EQ(halt(begun), "started");
  all.row->epoch += 1;  // an earlier run of the partition told Kafka, and a later one has begun
  EXPECT_EQ(halt(all), "started");
}

// The group took the partition away from this process, and gave it back.
TEST(Start, WhatWasSeenBeforeARevocationCountsIfNoRunHasBegunSince) {
  StartFacts all = calling(config::Repeat::never, "", "1/0/30");
  all.seen_wal = store::WalPosition{1, 0x20};
  all.was_seen_before = true;
  all.began_wal = store::WalPosition{1, 0x1F};
  all.left = all.row->epoch;
  EXPECT_EQ(halt(all), "started") << "another worker has settled the loss";
  all.row->is_of_earlier_run = true;
  EXPECT_EQ(halt(all), "tail_in_doubt");
  all.row->epoch += 1;
  all.provenance->epoch += 1;
  EXPECT_EQ(halt(all), "started") << "another worker has had it before the server began";
}

// An older state of the database was put back by a dump, whose log has gone on.
TEST(Start, AnOffsetInKafkaThatIsAheadOfItsCheckpointPutsCallsInDoubt) {
  struct Row {
    std::int64_t committed, epoch;
    bool is_in_doubt;
  };
  for (const Row& row : {Row{50, 3, false}, Row{49, 3, false}, Row{51, 3, true}, Row{10, 4, true},
                         Row{60, 2, false}}) {  // the last: an operator has rewound it
    SCOPED_TRACE(std::to_string(row.committed) + " of run " + std::to_string(row.epoch));
    StartFacts all = calling(config::Repeat::never, "1/0/1", "1/0/2");
    all.committed = row.committed;
    all.provenance->epoch = row.epoch;
    EXPECT_EQ(halt(all), row.is_in_doubt ? "tail_in_doubt" : "started");
    all.repeat = config::Repeat::queryable;
    EXPECT_EQ(at(all).doubt_below, row.is_in_doubt ? 100 : 0);
  }
}

// An operator has decided that this database counts. It does not know what the other one called
// for.
TEST(Start, AnotherStoreOfThisClusterPutsCallsInDoubt) {
  StartFacts all = calling(config::Repeat::never, "1/0/1", "1/0/1");
  all.provenance->store_id = "store-2";
  for (const char* decided : {"checkpoint", "earliest"}) {
    all.row->start_as = decided;
    EXPECT_EQ(halt(all), "tail_in_doubt") << decided;
  }
  all.row->start_as = "checkpoint";
  all.repeat = config::Repeat::queryable;
  EXPECT_EQ(at(all).doubt_below, 100);
}

TEST(Start, WhatAnotherClusterSawPutsNothingInDoubt) {
  StartFacts all = calling(config::Repeat::never, "9/0/0", "1/0/1");
  all.provenance->cluster_id = "cluster-2";
  EXPECT_EQ(halt(all), "started");
}

TEST(Start, NothingIsInDoubtWithoutAMessageOrWithoutACall) {
  StartFacts all = calling(config::Repeat::never, "1/1/0", "1/0/1");
  all.high = 50;
  EXPECT_EQ(at(all), (StartAt{50, false, 0}));
  all.high = 51;
  EXPECT_EQ(halt(all), "tail_in_doubt");
  all.repeat.reset();
  EXPECT_EQ(at(all), (StartAt{50, false, 0}));
}

TEST(Start, ADoubtLastsUntilTheCheckpointHasPassedIt) {
  StartFacts all = calling(config::Repeat::queryable, "1/0/1", "1/0/2");
  all.doubt.below = 51;
  EXPECT_EQ(at(all).doubt_below, 51);
  all.row->next_offset = 51;
  EXPECT_EQ(at(all).doubt_below, 0);
  all.row->next_offset = 20;  // an operator has rewound it
  all.row->epoch = 4;
  all.row->highest = 51;
  EXPECT_EQ(at(all).doubt_below, 0);
  all.doubt.below = 200;  // and a second loss does not end it
  all.wal = store::WalPosition{2, 2};
  EXPECT_EQ(at(all).doubt_below, 200);
  all.row->start_as = "initial";  // the topic was made again
  all.wal = store::WalPosition{1, 2};
  EXPECT_EQ(at(all).doubt_below, 0);
}

TEST(Start, AnOperatorDecidesOnTheCallsThatMustNotBeRepeated) {
  StartFacts all = calling(config::Repeat::never, "1/0/1", "2/0/1");
  EXPECT_EQ(halt(all), "tail_in_doubt");
  all.doubt.decided = "as_unknown";
  EXPECT_EQ(at(all).doubt_below, 100);
  all.doubt.decided = "call";
  EXPECT_EQ(at(all).doubt_below, 0);
  all.repeat = config::Repeat::queryable;  // declared since: it can be asked
  EXPECT_EQ(at(all).doubt_below, 100);
}

// What came while the partition stood halted was surely not called.
TEST(Start, ADecisionIsAboutTheMessagesOfItsQuestion) {
  StartFacts all = calling(config::Repeat::never, "1/0/1", "2/0/1");
  const auto asked = std::get<StartHalt>(decide_start(all));
  EXPECT_EQ(asked.asks_below, 100);
  EXPECT_EQ(asked.asks_run, 3);
  all.doubt.asked = asked.asks_below;
  all.doubt.asked_run = asked.asks_run;
  all.high = 130;
  EXPECT_EQ(std::get<StartHalt>(decide_start(all)).asks_below, 100);
  // Kafka has got an offset of a start that was not agreed, after another decision.
  all.provenance->wal = "2/0/1";
  all.row->start_as = "initial";
  all.low = 40;
  EXPECT_EQ(halt(all), "tail_in_doubt") << "nobody has decided yet";
  all.doubt.decided = "as_unknown";
  EXPECT_EQ(at(all).doubt_below, 100);
  all.doubt.decided = "call";
  EXPECT_EQ(at(all).doubt_below, 0);
}

// A backup from the time of an earlier halt was put back, when the partition had long gone on.
TEST(Start, AQuestionThatCameBackWithABackupIsAskedAgain) {
  for (const char* const decided : {"", "as_unknown", "call"}) {
    StartFacts all = calling(config::Repeat::never, "1/0/9", "1/0/1");
    all.row->epoch = 4;
    all.provenance->epoch = 5;
    all.doubt.asked = 60;
    all.doubt.asked_run = 3;
    all.doubt.decided = decided;
    EXPECT_EQ(halt(all), "tail_in_doubt") << decided;
    const auto asked = std::get<StartHalt>(decide_start(all));
    EXPECT_EQ(asked.asks_below, 100) << "what was called since is in doubt, too";
    EXPECT_EQ(asked.asks_run, 5);
  }
}

}  // namespace
}  // namespace hapax::worker
