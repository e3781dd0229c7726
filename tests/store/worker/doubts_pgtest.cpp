// What PostgreSQL tells of its log, and what is in doubt once it has lost the end of it.
#include "store/worker/doubts.hpp"

#include <gtest/gtest.h>

#include "store/operator/migrate.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

TEST(WalPosition, IsReadAsItIsWritten) {
  for (const WalPosition& position :
       {WalPosition{}, WalPosition{1, 0x16B3748}, WalPosition{7, 0x1'0000'00FF},
        WalPosition{0xFFFFFFFF, 0xFFFFFFFF'FFFFFFFF}, WalPosition{2, 1, "7395012345678901234.5"}})
    EXPECT_EQ(WalPosition::parse(position.text()), position) << position.text();
  EXPECT_EQ((WalPosition{2, 0x1'0000'00FF}.text()), "2/1/FF");
  EXPECT_EQ((WalPosition{2, 1, "7.5"}.text()), "7.5/2/0/1");
  for (const char* text :
       {"", "1", "1/", "1/2", "1/2/", "/1/2", "1//2", "1/2/3/4/5", "/1/0/1", "1/2/x", "-1/0/1",
        "1/0/100000000", "4294967296/0/1", " 1/0/1", "1/0/1 "})
    EXPECT_FALSE(WalPosition::parse(text)) << text;
}

class Doubts : public testing::Test {
 protected:
  // Starts partition 0 of the topic; nothing is changed with a wrong epoch.
  void start(std::optional<std::int64_t> doubt_below, std::int64_t behind = 0) {
    const auto row = read_checkpoint(session, "g", kPlace);
    const Taking taking{"g", kPlace, "w", "spec", "scope", row ? row->epoch : 0};
    AgreedStart agreed{take_partition(session, taking)->epoch - behind, 40, "cluster", ""};
    agreed.doubt_below = doubt_below;
    agree_start(session, taking, agreed);
  }
  Doubt doubt() { return read_doubts(session, "g", {kPlace})[kPlace]; }

  const TopicPartition kPlace{"t", 0};
  test::Database database;
  Session session{database.worker()};
};

TEST_F(Doubts, ThePositionIsOnDiskAndGrowsWithACheckpoint) {
  const StoreIdentity store = read_store(session, true);
  ASSERT_TRUE(store.position);
  EXPECT_EQ(store.position->timeline, 1U);
  const std::string text = store.position->text();
  EXPECT_EQ(store.position->database,
            database.value("SELECT concat((SELECT system_identifier FROM pg_control_system()), "
                           "'.', oid) FROM pg_database WHERE datname = current_database()"));
  EXPECT_EQ(database.value("SELECT '" + text.substr(text.find("/1/") + 3) +
                           "'::pg_lsn <= pg_current_wal_flush_lsn()"),
            "t");
  EXPECT_FALSE(read_store(session).position) << "it was not asked for";
  start({});
  database.run("CREATE TABLE more AS SELECT generate_series(1, 1000)");
  std::optional<WalPosition> position;
  const std::vector<CheckpointWrite> writes = {
      {kPlace, store.incarnation, read_checkpoint(session, "g", kPlace)->epoch, 40, 41}};
  EXPECT_EQ(write_checkpoints(session, "g", writes, &position).size(), 1U);
  ASSERT_TRUE(position);
  EXPECT_TRUE(store.position->may_lack(*position));
  EXPECT_FALSE(position->may_lack(*store.position));
  position.reset();
  EXPECT_TRUE(write_checkpoints(session, "g", writes, &position).empty());
  EXPECT_FALSE(position) << "nothing was written: this may be another server";
}

TEST_F(Doubts, AreKeptWithTheStartAndUseTheDecisionUp) {
  start({});
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.doubts"), 0);
  start(70);
  EXPECT_EQ(doubt().below, 70);
  EXPECT_EQ(doubt().decided, "");
  start(90, 1);  // another worker has taken it
  start({});
  EXPECT_EQ(doubt().below, 70);
  database.run("UPDATE hapax.doubts SET decided = 'call'");
  EXPECT_EQ(doubt().decided, "call");
  start(0);
  EXPECT_EQ(doubt().below, 0);
  EXPECT_EQ(doubt().decided, "");
}

TEST_F(Doubts, TheFirstQuestionCountsUntilAStartIsAgreed) {
  ask_about_doubt(session, "g", kPlace, 50, 3);
  database.run("UPDATE hapax.doubts SET decided = 'call'");
  ask_about_doubt(session, "g", kPlace, 60, 3);
  EXPECT_EQ(doubt().asked, 50);
  EXPECT_EQ(doubt().decided, "call");
  ask_about_doubt(session, "g", kPlace, 70, 4);
  EXPECT_EQ(doubt().asked, 70) << "a later run had gone on";
  EXPECT_EQ(doubt().decided, "") << "that was about another loss";
  EXPECT_EQ(doubt().asked_run, 4);
  EXPECT_EQ(doubt().below, 0);
  Session owner(database.owner());
  EXPECT_THROW(migrate_down(owner, 11), DatabaseError);
  start(50);
  EXPECT_EQ(doubt().asked, 0);
  EXPECT_EQ(doubt().below, 50);
  EXPECT_EQ(doubt().asked_run, 0);
  ask_about_doubt(session, "g", kPlace, 60, 4);
  EXPECT_EQ(doubt().asked, 60);
}

TEST_F(Doubts, AreNotTakenBackBeforeTheCheckpointHasPassedThem) {
  Session owner(database.owner());
  start(41);
  EXPECT_THROW(migrate_down(owner, 10), DatabaseError);
  database.run(
      "UPDATE hapax.checkpoints SET next_offset = 41; UPDATE hapax.doubts SET decided = 'call'");
  EXPECT_THROW(migrate_down(owner, 10), DatabaseError);
  database.run("UPDATE hapax.doubts SET decided = NULL");
  EXPECT_EQ(migrate_down(owner, 10), std::vector<int>{11});
}

}  // namespace
}  // namespace hapax::store
