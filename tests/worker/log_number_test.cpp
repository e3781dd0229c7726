// One log has one number in a scope, two logs have two: or one operation takes effect twice, or not
// at all.
#include "worker/log_number.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace hapax::worker {
namespace {

using store::KnownLog;

store::CheckpointRow logs_row(std::int32_t generation, const std::string& cluster = "c1") {
  store::CheckpointRow row;
  row.next_offset = 10;
  row.generation = generation;
  row.scope = "s";
  row.cluster_id = cluster;
  return row;
}

// As the decision `recreated` leaves it.
store::CheckpointRow recreated(std::int32_t before) {
  store::CheckpointRow row = worker::logs_row(before + 1);
  row.next_offset.reset();
  row.cluster_id.reset();
  row.start_as = "initial";
  return row;
}

LogFacts facts(std::optional<store::CheckpointRow> row, std::vector<KnownLog> known,
               const std::string& cluster = "c1", const std::string& id = "") {
  return {"s", cluster, id, std::move(row), std::move(known)};
}

std::int32_t number(const LogFacts& facts) {
  const auto decided = number_of_log(facts);
  return std::holds_alternative<LogNumber>(decided) ? std::get<LogNumber>(decided).generation : -1;
}

TEST(LogNumber, OfTheFirstGroupIsOneAndOfAGroupThatGoesOnIsAsItWas) {
  EXPECT_EQ(number(facts({}, {})), 1);
  EXPECT_EQ(number(facts(logs_row(4), {})), 4);
}

TEST(LogNumber, OfANewOrRenamedGroupIsTheOneThatTheOthersHave) {
  EXPECT_EQ(number(facts({}, {{"s", "c1", "", 2}})), 2);
  EXPECT_EQ(number(facts({}, {{"s", "c1", "x", 2}}, "c1", "x")), 2);
  EXPECT_EQ(number(facts({}, {{"s", "c1", "", 2, false}})), 2) << "by its checkpoint only";
}

TEST(LogNumber, OfAMirrorOrANewTopicIsAnother) {
  EXPECT_EQ(number(facts({}, {{"s", "c1", "", 1}}, "c2")), 2);
  EXPECT_EQ(number(facts({}, {{"s", "c1", "x", 1}}, "c1", "y")), 2);
  EXPECT_EQ(number(facts({}, {{"s", "c1", "", 1}, {"s", "c1", "x", 1}}, "c1", "y")), 2)
      << "what had no id was x";
}

TEST(LogNumber, IsJoinedByTheSecondGroupThatLearnsThatTheTopicWasMadeAgain) {
  EXPECT_EQ(number(facts(recreated(1), {{"s", "c1", "", 1}})), 2);
  EXPECT_EQ(number(facts(recreated(1), {{"s", "c1", "", 2}})), 2);
  EXPECT_EQ(number(facts(recreated(2), {{"s", "c1", "", 2}})), 3);
  EXPECT_EQ(number(facts(recreated(2), {{"s", "c1", "x", 1}, {"s", "c2", "y", 2}}, "c1", "x")), 1)
      << "back to where it was";
}

TEST(LogNumber, OfATopicThatWasMadeAgainIsNewThoughAnOperatorHasMovedItsStart) {
  store::CheckpointRow moved = recreated(1);
  moved.next_offset = 7;
  moved.start_as = "checkpoint";
  EXPECT_EQ(number(facts(moved, {{"s", "c1", "", 1}})), 2);
}

TEST(LogNumber, OfTheSameTopicElsewhereIsWhatTheOthersHaveThere) {
  store::CheckpointRow same = logs_row(1);
  same.start_as = "checkpoint";
  same.cluster_id.reset();
  same.key_spec = "spec";
  EXPECT_EQ(number(facts(same, {{"s", "c1", "", 1}, {"s", "c2", "", 2}}, "c2")), 2);
  EXPECT_EQ(number(facts(same, {{"s", "c1", "", 1}}, "c2")), 1);
}

TEST(LogNumber, IsDisputedByAGroupThatDoesNotKnowOfIt) {
  EXPECT_EQ(number(facts(logs_row(1), {{"s", "c1", "", 2}})), -1);
  EXPECT_EQ(number(facts(logs_row(1), {{"other", "c1", "", 2}})), 1) << "nobody shares its keys";
}

// Who cannot tell ids sees only that another group has read further than this log goes.
TEST(LogNumber, OfAShorterLogIsNotThatOfTheGroupsThatReadTheLongerOne) {
  LogFacts begins = facts({}, {{"s", "c1", "", 3, true}, {"s", "c1", "", 3, false, 20}});
  begins.log_end = 19;
  const auto disputed = std::get<LogDisputed>(number_of_log(begins));
  EXPECT_EQ(disputed.generation, 3);
  EXPECT_TRUE(disputed.is_of_short_log);
  begins.row = recreated(disputed.generation);
  EXPECT_EQ(number(begins), 4);
  begins.row = recreated(1);  // taken, but not begun, when it halted
  EXPECT_EQ(number(begins), 4);
  begins.row.reset();
  begins.log_end = 20;
  EXPECT_EQ(number(begins), 3);
  begins.log_end = 0;
  begins.known[1].scope = begins.known[0].scope = "other";
  EXPECT_EQ(number(begins), 4) << "and of another scope it is no name for this one";
}

// Who cannot tell ids, in a log that has grown past all that was read of the old one.
struct ProofOfALog : testing::Test {
  // Another group has read up to 20.
  LogFacts begins = [] {
    LogFacts all =
        facts({}, {{"s", "c1", "", 3, true}, {"s", "c1", "", 3, false, 20, "3/19/1000"}});
    all.log_end = 60;
    return all;
  }();
  // What stands at offset 19 now.
  void look(std::optional<std::int64_t> timestamp_ms, std::int32_t generation = 3) {
    const ReadRecord wanted{generation, 19, 1000, 0};
    begins.look = RecordLook{wanted, {}, {}};
    if (timestamp_ms) begins.look->found = ReadRecord{generation, 19, *timestamp_ms, 0};
  }
  bool asks() const { return std::holds_alternative<LogUnproven>(number_of_log(begins)); }
};

TEST_F(ProofOfALog, IsTheRecordThatAnotherGroupReadLast) {
  ASSERT_TRUE(asks());
  EXPECT_EQ(std::get<LogUnproven>(number_of_log(begins)).last, (ReadRecord{3, 19, 1000, 0}));
  look(1000);
  EXPECT_EQ(number(begins), 3);
  look(2000);
  const auto disputed = std::get<LogDisputed>(number_of_log(begins));
  EXPECT_EQ(disputed.generation, 3);
  EXPECT_FALSE(disputed.is_of_short_log);
  look({});
  EXPECT_EQ(number(begins), 3) << "compaction may have removed it";
  look(2000, 2);
  EXPECT_TRUE(asks()) << "that look was for another number";
}

TEST_F(ProofOfALog, IsNotWantedIfNoRecordCanTell) {
  begins.log_begin = 20;
  EXPECT_EQ(number(begins), 3) << "retention has removed it";
  begins.log_begin = 0;
  begins.known[1].last_record = "2/19/1000";  // from before a decision
  EXPECT_EQ(number(begins), 3);
  begins.known[1].last_record = "3/19/1000";
  begins.known[0].topic_id = begins.known[1].topic_id = begins.topic_id = "x";
  EXPECT_EQ(number(begins), 3) << "the topic's id tells";
  begins.known[0].scope = begins.known[1].scope = "other";
  begins.topic_id.clear();
  EXPECT_EQ(number(begins), 3) << "nobody shares its keys";
}

TEST_F(ProofOfALog, IsWantedThoughOnlyTheNewGroupCanTellIds) {
  begins.topic_id = "x";
  EXPECT_TRUE(asks());
}

TEST_F(ProofOfALog, TellsTheSecondGroupOfADecisionFromOneThatReadALogInBetween) {
  begins.row = recreated(1);
  EXPECT_TRUE(asks());
  look(1000);
  EXPECT_EQ(number(begins), 3);
  look(2000);
  EXPECT_EQ(number(begins), 4);
}

TEST_F(ProofOfALog, IsWantedOfAGroupThatComesFromAnotherScope) {
  begins.row = worker::logs_row(3);
  EXPECT_EQ(number(begins), 3) << "it has read this log";
  begins.row->scope = "other";
  EXPECT_TRUE(asks());
  look(2000);
  EXPECT_EQ(number(begins), 4) << "it goes on at its checkpoint, under keys that nobody has";
}

TEST(LogNumber, OfAGroupThatCannotTellIdsIsKeptIfAnotherLearnsTheId) {
  const auto decided =
      std::get<LogNumber>(number_of_log(facts(logs_row(3), {{"s", "c1", "", 3}}, "c1", "x")));
  EXPECT_EQ(decided, (LogNumber{3, true}));
  EXPECT_EQ(number(facts({}, {{"s", "c1", "", 3}}, "c1", "x")), 3);
  EXPECT_EQ(number(facts({}, {{"s", "c1", "x", 3}})), 3) << "and back again";
}

// Groups of one scope on two clusters, whose topics are made again, or lose their ends, at any
// time. Each group halts there, and its operator decides `recreated`.
class Worlds : public testing::TestWithParam<int> {
 protected:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  struct Log {
    int made = 0;  // which one it is
    std::string id;
  };
  struct Group {
    std::string cluster;
    std::optional<store::CheckpointRow> row;
    int made = -1;  // the log that its checkpoint is of
  };

  std::vector<KnownLog> known_to(const Group& group) const {
    std::vector<KnownLog> known;
    for (const auto& [name, generation] : logs_)
      known.push_back({"s", name.first, name.second, generation});
    for (const Group& other : groups_)
      if (&other != &group && other.row && other.row->cluster_id)
        known.push_back({"s", *other.row->cluster_id, other.row->topic_id.value_or(""),
                         other.row->generation, false});
    return known;
  }

  // Starts the group as a worker would, and as its operator would if it halts.
  void start(Group& group, bool tells_ids) {
    const Log& log = log_of_[group.cluster];
    LogFacts facts{"s", group.cluster, tells_ids ? log.id : "", group.row, known_to(group)};
    auto decided = number_of_log(facts);
    const bool other_log = group.row && group.made != log.made;  // the start checks find it
    if (other_log || std::holds_alternative<LogDisputed>(decided)) {
      facts.row = recreated(group.row->generation);
      decided = number_of_log(facts);
    }
    ASSERT_TRUE(std::holds_alternative<LogNumber>(decided));
    const LogNumber& number = std::get<LogNumber>(decided);
    if (number.learns) logs_[{group.cluster, facts.topic_id}] = number.generation;
    group.row = logs_row(number.generation, group.cluster);
    if (!facts.topic_id.empty()) group.row->topic_id = facts.topic_id;
    group.made = log.made;
    numbers_[log.made].insert(number.generation);
    logs_of_[number.generation].insert(log.made);
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  std::map<std::string, Log> log_of_{{"c1", {0, "id0"}}, {"c2", {1, "id1"}}};
  std::vector<Group> groups_{{"c1"}, {"c1"}, {"c2"}, {"c1"}};
  std::map<std::pair<std::string, std::string>, std::int32_t> logs_;
  std::map<int, std::set<std::int32_t>> numbers_;  // by log
  std::map<std::int32_t, std::set<int>> logs_of_;  // by number
};

TEST_P(Worlds, HaveOneNumberForALogAndOneLogForANumber) {
  const bool tells_ids = GetParam() % 2 == 0;
  int made = 1;
  for (int n = 0; n < 60 && !HasFatalFailure(); ++n) {
    Group& group = groups_[static_cast<std::size_t>(below(4))];
    Log& log = log_of_[group.cluster];
    switch (below(4)) {
      case 0: {
        // Who cannot tell ids learns it from operators: from one for each group, and that for one
        // new topic before there is the next.
        const bool all_know = std::ranges::all_of(groups_, [&](const Group& one) {
          return one.cluster != group.cluster || !one.row || one.made == log.made;
        });
        if (!tells_ids && (!all_know || !group.row)) break;
        log.made = ++made;
        log.id = "id" + std::to_string(made);
        if (!tells_ids) start(group, tells_ids);
        break;
      }
      case 1:
        if (tells_ids) group.cluster = group.cluster == "c1" ? "c2" : "c1";  // a failover
        break;
      case 2: group.row.reset(); break;  // another group
      default: start(group, tells_ids);
    }
  }
  for (const auto& [log, numbers] : numbers_) EXPECT_EQ(numbers.size(), 1U) << "log " << log;
  for (const auto& [number, logs] : logs_of_) EXPECT_EQ(logs.size(), 1U) << "number " << number;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Worlds, testing::Range(0, 200));

}  // namespace
}  // namespace hapax::worker
