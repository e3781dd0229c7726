// What the checkpoint row tells: the next offset, who may write it, and whether commits were lost.
#include "store/worker/checkpoints.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "store/operator/migrate.hpp"
#include "store/operator/operator.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() {
    session.emplace(database.worker());
    incarnation = read_store(*session).incarnation;
  }

  Taking taking(std::int64_t read_epoch, const std::string& owner = "a", int partition = 0) {
    return {"group", {"payments", partition}, owner, "spec", "booking", read_epoch};
  }

  // Takes and starts the partition at `offset`; its epoch.
  std::int64_t started(std::int64_t offset, std::int64_t read_epoch = 0, int partition = 0) {
    const auto epoch = take_partition(*session, taking(read_epoch, "a", partition))->epoch;
    agree_start(*session, taking(read_epoch, "a", partition), {epoch, offset, "cluster", ""});
    return epoch;
  }

  bool write(std::int64_t epoch, std::int64_t last, std::int64_t next, int partition = 0) {
    return !write_checkpoints(*session, "group",
                              {{{"payments", partition}, incarnation, epoch, last, next}})
                .empty();
  }

  CheckpointRow row(int partition = 0) {
    return *read_checkpoint(*session, "group", {"payments", partition});
  }

  test::Database database;
  std::optional<Session> session;
  std::string incarnation;
};

TEST_F(Checkpoints, AreMadeWithoutAnOffsetUntilTheStartIsAgreed) {
  EXPECT_FALSE(read_checkpoint(*session, "group", {"payments", 0}));
  const auto taken = take_partition(*session, taking(0));
  EXPECT_EQ(row().epoch, taken->epoch);
  EXPECT_EQ(row().next_offset, std::nullopt);
  EXPECT_EQ(row().owner, "a");
  EXPECT_EQ(agree_start(*session, taking(0), {taken->epoch, 40, "cluster", ""}), 40);
  EXPECT_EQ(row().next_offset, 40);
  EXPECT_EQ(row().highest, 40);
}

// A group that was forgotten left letters, whose offsets may mean other messages by now.
TEST_F(Checkpoints, OfAGroupThatWasForgottenHaveANewGeneration) {
  started(40);
  ASSERT_EQ(row().generation, 1);
  database.run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count,"
      " last_error, handler, next_try) VALUES ('group', 'payments', 3, 0, 7, 2, 'no', 'h', now()),"
      " ('other', 'payments', 8, 0, 7, 2, 'no', 'h', now());"
      "DELETE FROM hapax.checkpoints");
  EXPECT_EQ(take_partition(*session, taking(0))->generation, 4);
  EXPECT_EQ(row().generation, 4);
  EXPECT_EQ(take_partition(*session, taking(row().epoch))->generation, 4);
  EXPECT_EQ(take_partition(*session, taking(0, "a", 1))->generation, 4) << "of a later chunk";
  Taking new_group = taking(0);
  new_group.group = "new";
  EXPECT_EQ(take_partition(*session, new_group)->generation, 1);
}

TEST_F(Checkpoints, KeepEachJumpAndNothingElse) {
  const auto start = [&](std::int64_t offset, std::optional<std::int64_t> from, Jump jump) {
    const auto read = read_checkpoint(*session, "group", {"payments", 0});
    const auto epoch = take_partition(*session, taking(read ? read->epoch : 0))->epoch;
    agree_start(*session, taking(0), {epoch, offset, "cluster", "", 1, from, jump});
  };
  start(40, std::nullopt, Jump::first_start);
  start(40, 40, Jump::none);
  start(40, 40, Jump::decision);  // the decision is to stay at the same offset
  start(7, 40, Jump::foreign_reset);
  EXPECT_EQ(database.value("SELECT string_agg(concat_ws(' ', cause, coalesce(from_offset, -1), "
                           "to_offset, who), ', ' ORDER BY id) FROM hapax.position_changes"),
            "first_start -1 40 a, foreign_reset 40 7 a");
}

TEST_F(Checkpoints, StartOnTheSchemaBefore) {
  Session owner(database.owner());
  migrate_down(owner, kOldestSchema);
  EXPECT_EQ(schema_problem(*session), std::nullopt);
  const auto taken = take_partition(*session, taking(0));
  EXPECT_TRUE(read_logs(*session, "group", {{"payments", 0}}).empty());
  EXPECT_EQ(
      agree_start(*session, taking(0),
                  {taken->epoch, 40, "cluster", "", 1, std::nullopt, Jump::first_start, 0, true}),
      40);
}

TEST_F(Checkpoints, MoveForTheirOwnerOnly) {
  const auto epoch = started(40);
  EXPECT_TRUE(write(epoch, 40, 45));
  const auto taken = take_partition(*session, taking(epoch, "b"));
  EXPECT_EQ(taken->epoch, epoch + 1);
  EXPECT_FALSE(write(epoch, 45, 50)) << "a zombie wrote";
  EXPECT_EQ(row().next_offset, 45);
  EXPECT_TRUE(write(taken->epoch, 45, 46));
}

TEST_F(Checkpoints, AreNotTakenOnAnOldReading) {
  const auto epoch = started(40);
  EXPECT_FALSE(take_partition(*session, taking(0, "b")));
  EXPECT_FALSE(take_partition(*session, taking(epoch - 1, "b")));
  EXPECT_EQ(row().owner, "a");
  EXPECT_EQ(agree_start(*session, taking(0), {epoch - 1, 7, "cluster", ""}), std::nullopt);
  EXPECT_EQ(row().next_offset, 40);
}

TEST_F(Checkpoints, AreWrittenOnlyOnTopOfWhatWasWrittenLast) {
  const auto epoch = started(40);
  EXPECT_TRUE(write(epoch, 40, 45));
  EXPECT_FALSE(write(epoch, 40, 50));
  EXPECT_EQ(row().next_offset, 45);
}

TEST_F(Checkpoints, OfManyPartitionsAreWrittenTogetherAndTheMissingNamed) {
  std::vector<CheckpointWrite> writes;
  for (const int partition : {2, 0, 1}) {
    const auto epoch = started(10, 0, partition);
    writes.push_back(
        {{"payments", partition}, incarnation, epoch + (partition == 1 ? 1 : 0), 10, 20});
  }
  EXPECT_EQ(write_checkpoints(*session, "group", writes),
            (std::set<TopicPartition>{{"payments", 0}, {"payments", 2}}));
  EXPECT_EQ(row(1).next_offset, 10);
  EXPECT_EQ(row(2).next_offset, 20);
}

TEST_F(Checkpoints, RememberTheHighestOffsetWhereverTheyGoBackTo) {
  const auto epoch = started(40);
  write(epoch, 40, 100);
  EXPECT_EQ(agree_start(*session, taking(0), {epoch, 60, "cluster", ""}), 100);
  EXPECT_EQ(row().next_offset, 60);
  EXPECT_EQ(row().highest, 100);
  write(epoch, 60, 70);
  EXPECT_EQ(row().highest, 100);
}

TEST_F(Checkpoints, TellWhetherTheLastOwnerLeftCleanly) {
  auto epoch = started(40);
  EXPECT_EQ(row().started_runs, 1);
  leave_partitions(*session, taking(0).group, {{taking(0).partition, epoch - 1, incarnation, 40}});
  EXPECT_EQ(row().owner, "a") << "left by a zombie";
  leave_partitions(*session, taking(0).group,
                   {{taking(0).partition, epoch, "00000000-0000-0000-0000-000000000000", 40}});
  EXPECT_EQ(row().owner, "a") << "left by who started before a loss";
  leave_partitions(*session, taking(0).group, {{taking(0).partition, epoch, incarnation, 44}});
  EXPECT_EQ(row().owner, std::nullopt);
  EXPECT_EQ(row().started_runs, 0);
  EXPECT_EQ(row().highest_settled, 44);
}

TEST_F(Checkpoints, CountStartsUntilTheyAdvance) {
  auto epoch = started(40);
  for (int start = 2; start <= 4; ++start) {
    // Taken once in vain: the group took it away before its start was agreed.
    epoch = take_partition(*session, taking(epoch))->epoch;
    const auto taken = take_partition(*session, taking(epoch));
    epoch = taken->epoch;
    EXPECT_EQ(taken->started_runs, start);
    agree_start(*session, taking(0), {epoch, 40, "cluster", ""});
    EXPECT_EQ(row().started_runs, start);
  }
  EXPECT_TRUE(write(epoch, 40, 41));
  EXPECT_EQ(row().started_runs, 0);
}

TEST_F(Checkpoints, AreWrittenSynchronouslyUnderAnySettingOfTheSession) {
  const auto epoch = started(40);
  database.run(
      "CREATE TABLE seen (setting text);"
      "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN "
      "INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
      "CREATE TRIGGER look AFTER UPDATE ON hapax.checkpoints FOR EACH ROW EXECUTE "
      "FUNCTION look();"
      "ALTER DATABASE " +
      database.name() + " SET synchronous_commit = off");
  session.emplace(database.worker());
  EXPECT_TRUE(write(epoch, 40, 41));
  EXPECT_EQ(database.value("SELECT setting FROM seen"), "on");
  // Kafka's offset may follow a start, too.
  database.run("DELETE FROM seen");
  agree_start(*session, taking(0), {epoch, 41, "cluster", ""});
  EXPECT_EQ(database.value("SELECT setting FROM seen"), "on");
}

// Crash recovery empties the UNLOGGED table: the tail of acknowledged commits may be gone.
TEST_F(Checkpoints, AreRefusedAfterACrashUntilTheNewIncarnationIsRead) {
  const auto epoch = started(40);
  EXPECT_TRUE(write(epoch, 40, 41));
  test::postgres().kill();
  test::postgres().start();
  session.emplace(database.worker());
  EXPECT_FALSE(write(epoch, 41, 42));
  const std::string again = read_store(*session).incarnation;
  EXPECT_NE(again, incarnation);
  EXPECT_FALSE(write(epoch, 41, 42));
  incarnation = again;
  EXPECT_TRUE(write(epoch, 41, 42));
}

TEST_F(Checkpoints, OfAnIdlePartitionTellACrashToo) {
  const auto epoch = started(40);
  const auto held = [&] { return read_held(*session, "group", "a").at({"payments", 0}); };
  EXPECT_EQ(held().epoch, epoch);
  EXPECT_EQ(held().incarnation, incarnation);
  test::postgres().kill();
  test::postgres().start();
  session.emplace(database.worker());
  EXPECT_EQ(held().incarnation, "") << "nobody has looked since";
  const std::string again = read_store(*session).incarnation;
  EXPECT_EQ(held().incarnation, again);
  EXPECT_EQ(held().epoch, epoch);
}

TEST_F(Checkpoints, AreWrittenForATopicOfAnyName) {
  Taking taking = this->taking(0);
  taking.partition.first = "null";
  const auto epoch = take_partition(*session, taking)->epoch;
  agree_start(*session, taking, {epoch, 40, "cluster", ""});
  EXPECT_EQ(
      write_checkpoints(*session, "group", {{{"null", 0}, incarnation, epoch, 40, 41}}).size(), 1U);
}

// Nothing is lost by it; but files that were put back while the server was down look the same.
TEST_F(Checkpoints, AreRefusedAfterACleanRestartToo) {
  const auto epoch = started(40);
  test::postgres().stop();
  test::postgres().start();
  session.emplace(database.worker());
  EXPECT_FALSE(write(epoch, 40, 41));
  const std::string again = read_store(*session).incarnation;
  EXPECT_NE(again, incarnation);
  incarnation = again;
  EXPECT_TRUE(write(epoch, 40, 41));
}

TEST_F(Checkpoints, OfACopiedDatabaseAreKnownAsACopy) {
  const StoreIdentity original = read_store(*session);
  EXPECT_FALSE(original.copied) << original.facts;
  session.reset();
  const auto copy = database.copy();
  Session other(copy->worker());
  const StoreIdentity copied = read_store(other);
  EXPECT_TRUE(copied.copied) << copied.facts;
  EXPECT_EQ(copied.id, original.id);
}

TEST_F(Checkpoints, OfManyPartitionsAreTakenAndAgreedTogether) {
  std::vector<Taking> takings;
  for (int partition = 0; partition < 300; ++partition)
    takings.push_back(taking(0, "a", partition));
  const auto by_another = take_partition(*session, taking(0, "b", 7));
  ASSERT_TRUE(by_another);
  const auto taken = take_partitions(*session, takings);
  EXPECT_EQ(taken.size(), 299U);
  EXPECT_FALSE(taken.contains({"payments", 7}));
  std::vector<StartWrite> starts;
  for (const Taking& one : takings) {
    const auto found = taken.find(one.partition);
    starts.push_back({one,
                      {found == taken.end() ? by_another->epoch : found->second.epoch,
                       one.partition.second, "cluster", "id", 3, std::nullopt, Jump::first_start,
                       one.partition.second == 9 ? 50 : 0}});
  }
  ++starts[8].start.epoch;  // taken meanwhile
  const auto highest = agree_starts(*session, starts);
  EXPECT_EQ(highest.size(), 299U);
  EXPECT_EQ(highest.at({"payments", 9}), 50);
  EXPECT_EQ(row(200).next_offset, 200);
  EXPECT_EQ(row(200).generation, 3);
  EXPECT_EQ(row(8).next_offset, std::nullopt);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.position_changes"), 299);
}

TEST_F(Checkpoints, AreWrittenWithoutTheLastRecordOnASchemaThatKeepsNone) {
  Session owner(database.owner());
  migrate_down(owner, kOldestSchema);
  const auto epoch = take_partition(*session, taking(0))->epoch;
  ASSERT_TRUE(agree_start(*session, taking(0), {epoch, 40, "cluster", ""}));
  CheckpointWrite write{{"payments", 0}, read_store(*session).incarnation, epoch, 40, 41};
  write.last_record = "1/40/";
  EXPECT_EQ(write_checkpoints(*session, "group", {write}).size(), 1U);
  EXPECT_EQ(read_checkpoint(*session, "group", {"payments", 0})->last_record, std::nullopt);
  migrate_up(owner);
  write.last_written = 41;
  write.next_offset = 42;
  EXPECT_EQ(write_checkpoints(*session, "group", {write}).size(), 1U);
  EXPECT_EQ(read_checkpoint(*session, "group", {"payments", 0})->last_record, "1/40/");
}

// Keys that exist are found by the number that their log had before numbers were kept by log.
TEST_F(Checkpoints, KeepTheNumbersOfTheirLogsThroughTheMigrationThatNamesLogs) {
  Session owner(database.owner());
  migrate_down(owner, kOldestSchema);
  const auto begin = [&](const std::string& group, std::int32_t generation) {
    Taking one = taking(0);
    one.group = group;
    const auto epoch = take_partition(*session, one)->epoch;
    ASSERT_TRUE(agree_start(*session, one, {epoch, 40, "cluster", "", generation}));
  };
  begin("first", 1);
  begin("second", 3);
  migrate_up(owner);
  database.run("DELETE FROM hapax.checkpoints");
  const KnownLogs known = read_logs(owner, "third", {{"payments", 0}});
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known.begin()->second, std::vector<KnownLog>{(KnownLog{"booking", "cluster", "", 3})});
}

// Two groups begin two clusters' topics at once, and both think that they are the first.
TEST_F(Checkpoints, GiveALogNoNumberThatAnotherGroupHasGivenMeanwhile) {
  const auto begin = [&](const std::string& group, const std::string& cluster,
                         const KnownLogs& known) {
    Taking one = taking(0);
    one.group = group;
    AgreedStart start{take_partition(*session, one)->epoch, 0, cluster, "id"};
    start.learns_log = true;
    if (const auto found = known.find(one.partition); found != known.end())
      start.known_logs = found->second;
    return agree_start(*session, one, start);
  };
  const KnownLogs nothing = read_logs(*session, "group", {{"payments", 0}});
  EXPECT_TRUE(nothing.empty());
  EXPECT_TRUE(begin("group", "one", nothing));
  EXPECT_FALSE(begin("mirror", "two", nothing)) << "it decided on what was known before";
  const KnownLogs known = read_logs(*session, "third", {{"payments", 0}});
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known.begin()->second.front(), (KnownLog{"booking", "one", "id", 1, false}))
      << "of the group's checkpoint; and hapax.logs has it, too";
  EXPECT_EQ(known.begin()->second.size(), 2U);
  database.run("UPDATE hapax.checkpoints SET next_offset = 70 WHERE cluster_id = 'one'");
  const KnownLogs moved = read_logs(*session, "third", {{"payments", 0}});
  EXPECT_EQ(moved, known) << "checkpoints move while a start is decided";
  EXPECT_EQ(moved.begin()->second.front().reached, 70);
  EXPECT_TRUE(begin("third", "two", known));
}

TEST_F(Checkpoints, KeepWhatWasSettledBeyondThePlaceThatAnOperatorMovesThemTo) {
  const auto epoch = started(40);
  leave_partitions(*session, "group", {{{"payments", 0}, epoch, incarnation, 50}});
  Session owner(database.owner());
  move_position(owner, {"group", {"payments", 0}, 30, Jump::rewind, "ann", "why"});
  EXPECT_EQ(row().next_offset, 30);
  EXPECT_EQ(row().highest_settled, 50) << "a changed key spec would be let in";
}

TEST_F(Checkpoints, TellWhatWaitsAhead) {
  database.run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
      "last_error, handler, first_at, last_at, next_try) SELECT 'group', 'payments', 1, 0, n, n, "
      "'', 'h', at - interval '1 minute', at, at + interval '1 hour' FROM (SELECT n, now() + "
      "n / 4 * interval '1 day' AS at FROM generate_series(1, 4) n) t; "
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, kafka_offset, "
      "reason, detail, halted_by, ended_at, ended_by, why, decision) VALUES ('group', 'payments', "
      "0, false, 1, 9, 'r', 'd', 'w', now(), 'ann', 'poison', 'skip')");
  auto known = read_known_messages(*session, "group", {{{"payments", 0}, 1, 2}}).begin()->second;
  ASSERT_EQ(known.attempts.size(), 3U);
  EXPECT_EQ(known.attempts.at(3).lasting_ms, 60'000);
  EXPECT_EQ(known.attempts.at(4).count, 4);
  EXPECT_EQ(known.attempts.at(4).wait_ms, 3'600'000) << "the clock went back by a day since";
  EXPECT_EQ(known.skips.at(9), "ann: poison");
  EXPECT_TRUE(read_known_messages(*session, "group", {{{"payments", 0}, 2, 0}}).empty());
}

// Below the highest checkpoint each message is looked up anyway.
TEST_F(Checkpoints, TellTheDeadLettersFromTheHighestOn) {
  started(40);
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) SELECT 'group', 'payments', 1, 0, n, 'none', '{}', '{}', "
      "'rejected', '', 1, 'h', '', 's', now() FROM generate_series(38, 42) n");
  Standing standing{{"payments", 0}, 1, 30};
  const auto letters = [&] {
    return read_known_messages(*session, "group", {standing})[standing.partition].letters;
  };
  EXPECT_EQ(letters(), (std::set<std::int64_t>{40, 41, 42}));
  standing.offset = 42;
  EXPECT_EQ(letters(), (std::set<std::int64_t>{42}));
  standing.by_position = true;
  EXPECT_EQ(letters(), (std::set<std::int64_t>{}));
}

}  // namespace
}  // namespace hapax::store
