// The keeper's thread that writes checkpoints and serves halts, on a PostgreSQL and without Kafka.
#include "worker/checkpointer.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "observe/health.hpp"
#include "support/database.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;

constexpr const char* kOtherIncarnation = "00000000-0000-0000-0000-000000000000";
constexpr milliseconds kNever = std::chrono::hours(1);
constexpr milliseconds kOften{5};
constexpr milliseconds kPatient{10'000};

class CheckpointerCase : public ::testing::Test {
 protected:
  ~CheckpointerCase() override {
    if (checkpointer_) checkpointer_->stop();
  }

  // `interval`: between checkpoints.
  Checkpointer& start(milliseconds interval) {
    setup_.checkpoint_interval = interval;
    checkpointer_.emplace(setup_, held, halts, notices, postgres_, metrics_);
    checkpointer_->start();
    return *checkpointer_;
  }

  void stop() { checkpointer_->stop(); }

  // A partition that this worker holds since its start at offset 40.
  std::shared_ptr<Partition> hold(std::int32_t number = 0) {
    const store::Taking taking{"group", {"payments", number}, "w", "spec", "booking", 0};
    const auto epoch = store::take_partition(session, taking)->epoch;
    store::agree_start(session, taking, {epoch, 40, "cluster", ""});
    auto partition = std::make_shared<Partition>(taking.partition, route_, 0);
    const auto store = store::read_store(session);
    partition->begin(
        {.epoch = epoch,
         .incarnation = started_before ? std::string(kOtherIncarnation) : store.incarnation,
         .unlogged_id = store.unlogged_id,
         .offset = 40});
    held.add(partition);
    return partition;
  }

  static void settle(Partition& partition, std::int64_t offset) {
    partition.receive(offset, 0);
    const Partition::Settled settled{offset, 0};
    partition.settle(std::span(&settled, 1));
  }

  // The next notice, which must be a What.
  template <class What>
  What next_notice() {
    const auto until = std::chrono::steady_clock::now() + kPatient;
    while (std::chrono::steady_clock::now() < until) {
      for (const Notice& notice : notices.take()) {
        if (const What* what = std::get_if<What>(&notice)) return *what;
        ADD_FAILURE() << "another notice came";
      }
      std::this_thread::yield();
    }
    ADD_FAILURE() << "no notice came";
    return {};
  }

  std::string row() {
    return database.value("SELECT next_offset, coalesce(owner, 'nobody') FROM hapax.checkpoints");
  }

  static store::Halt halt(std::int32_t partition) {
    return {.topic = "payments", .partition = partition, .reason = "breaker", .halted_by = "w"};
  }

  bool started_before = false;  // the next partitions began before PostgreSQL was restarted
  test::Database database;
  store::Session session{database.worker()};
  Notices notices;
  HeldPartitions held;
  HaltWatch halts{"group", held, notices};

 private:
  flow::Route route_;
  observe::Health health_;
  observe::Metrics metrics_{{}};
  PostgresState postgres_{health_, metrics_, kNever};
  KeeperSetup setup_{.group = "group", .worker_name = "w", .connect = [this] {
                       return store::Session(database.worker());
                     }};
  std::optional<Checkpointer> checkpointer_;
};

TEST_F(CheckpointerCase, WritesTheWatermarkOfEachPartition) {
  const auto partition = hold();
  for (const std::int64_t offset : {40, 41, 42}) partition->receive(offset, 0);
  settle(*partition, 40);
  settle(*partition, 42);
  start(kOften);
  database.wait_until("SELECT next_offset FROM hapax.checkpoints", "41");
  settle(*partition, 41);
  database.wait_until("SELECT next_offset FROM hapax.checkpoints", "43");
}

// So that the next owner can look whether the log is still the same.
TEST_F(CheckpointerCase, KeepsTheLastRecordBelowTheWatermark) {
  const auto partition = hold();
  partition->receive(40, 7, {}, 1000);
  partition->receive(43, 9, {}, std::nullopt);
  const Partition::Settled first{40, 7};
  const Partition::Settled second{43, 9};
  start(kOften);
  partition->settle(std::span(&first, 1));
  database.wait_until("SELECT next_offset, last_record FROM hapax.checkpoints", "43|1/40/1000");
  partition->settle(std::span(&second, 1));
  database.wait_until("SELECT next_offset, last_record FROM hapax.checkpoints", "44|1/43/");
  EXPECT_EQ(store::read_checkpoint(session, "group", {"payments", 0})->last_record, "1/43/");
}

TEST_F(CheckpointerCase, PostsThatAPartitionWasTakenThoughItHasNothingToWrite) {
  const auto partition = hold();
  store::take_partition(
      session,
      {"group", {"payments", 0}, "other", "spec", "booking", partition->beginning().epoch});
  start(kOften);
  const auto fenced = next_notice<Fenced>();
  EXPECT_EQ(fenced.partition, partition);
  EXPECT_TRUE(fenced.by_another);
  EXPECT_FALSE(held.has(partition));
}

// The server's files are all there: the row that a crash would have removed, and the checkpoint.
TEST_F(CheckpointerCase, KnowsARestartOfPostgreSQLAndTellsOfItOnce) {
  started_before = true;
  hold(0);
  const auto dirty = hold(1);
  settle(*dirty, 40);
  ::testing::internal::CaptureStderr();
  start(kOften);
  EXPECT_TRUE(next_notice<Fenced>().by_restart);
  stop();
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("postgres_restarted: PostgreSQL was restarted, and has the checkpoints"),
            std::string::npos)
      << logged;
  EXPECT_NE(logged.find("partitions=2"), std::string::npos) << logged;
}

TEST_F(CheckpointerCase, CallsALossOfTheServersTailNoRestart) {
  started_before = true;
  const auto partition = hold();
  database.run("DELETE FROM hapax.incarnation");  // as crash recovery does
  start(kOften);
  EXPECT_FALSE(next_notice<Fenced>().by_restart);
}

// As after a cold copy of the server's files was put back, which brings the other row back, too.
TEST_F(CheckpointerCase, CallsACheckpointThatIsOlderNoRestart) {
  started_before = true;
  const auto partition = hold();
  partition->checkpointed(41);
  start(kOften);
  EXPECT_FALSE(next_notice<Fenced>().by_restart);
}

TEST_F(CheckpointerCase, CallsAPartitionThatAnotherTookNoRestart) {
  started_before = true;
  const auto partition = hold();
  store::take_partition(
      session,
      {"group", {"payments", 0}, "other", "spec", "booking", partition->beginning().epoch});
  start(kOften);
  const auto fenced = next_notice<Fenced>();
  EXPECT_FALSE(fenced.by_restart);
  EXPECT_TRUE(fenced.by_another);
}

TEST_F(CheckpointerCase, WritesTheLastCheckpointAndLeavesCleanlyIfNothingRuns) {
  const auto partition = hold();
  Checkpointer& checkpointer = start(kNever);
  settle(*partition, 40);
  EXPECT_TRUE(checkpointer.release({partition}, true, kPatient));
  EXPECT_EQ(row(), "41|nobody");
  EXPECT_FALSE(held.has(partition));
}

TEST_F(CheckpointerCase, StaysTheOwnerIfAMessageStillRuns) {
  const auto partition = hold();
  Checkpointer& checkpointer = start(kNever);
  settle(*partition, 40);
  EXPECT_TRUE(checkpointer.release({partition}, false, kPatient));
  EXPECT_EQ(row(), "41|w");
  EXPECT_FALSE(held.has(partition));
}

TEST_F(CheckpointerCase, DoesNothingForAnAssignmentThatItDoesNotHold) {
  const auto older = hold();
  settle(*older, 40);
  auto newer = std::make_shared<Partition>(older->id(), older->route(), 0);
  held.add(newer);
  EXPECT_TRUE(start(kNever).release({older}, true, kPatient));
  EXPECT_EQ(row(), "40|w");
  EXPECT_TRUE(held.has(newer));
}

TEST_F(CheckpointerCase, RecordsANewHaltAtOnceAndPostsItsEnd) {
  Checkpointer& checkpointer = start(kNever);
  halts.add(halt(3), false);
  checkpointer.wake();
  // Only then this turn looks for ended halts no more.
  const auto until = std::chrono::steady_clock::now() + kPatient;
  while (!halts.unrecorded().empty() && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.halts"), "1");
  database.run("UPDATE hapax.halts SET ended_at = now()");
  checkpointer.wake();
  EXPECT_EQ(next_notice<HaltEnded>().partition, (TopicPartition{"payments", 3}));
}

TEST_F(CheckpointerCase, RecordsANewHaltBeforeItLeaves) {
  Checkpointer& checkpointer = start(kNever);
  halts.add(halt(3), false);
  EXPECT_TRUE(checkpointer.release({}, true, kPatient));
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.halts"), "1");
}

TEST_F(CheckpointerCase, RecordsAHaltThatQuotesBytesWhichAreNoTextAndTheOneBehindIt) {
  Checkpointer& checkpointer = start(kNever);
  store::Halt quoting = halt(3);
  quoting.detail = std::string("a\xC3\0b", 4);
  halts.add(quoting, false);
  halts.add(halt(4), false);
  EXPECT_TRUE(checkpointer.release({}, true, kPatient));
  EXPECT_EQ(database.value("SELECT string_agg(detail, '|' ORDER BY partition) FROM hapax.halts"),
            "a\uFFFDb|");
}

TEST_F(CheckpointerCase, PostsTheHaltOfARouteByAnotherWorker) {
  const auto partition = hold();
  store::Halt others = halt(7);
  others.whole_route = true;
  store::open_halt(session, "group", others);
  start(kOften);
  const auto wanted = next_notice<HaltWanted>();
  EXPECT_EQ(wanted.partition, partition);
  EXPECT_TRUE(wanted.recorded);
}

TEST_F(CheckpointerCase, ForgetsTheHaltOfAPartitionThatWasTakenAway) {
  const auto partition = hold();
  halts.add(halt(3), true);
  halts.add(halt(4), true);
  halts.forget({"payments", 3});
  start(kOften);
  EXPECT_EQ(next_notice<HaltEnded>().partition, (TopicPartition{"payments", 4}));
}

}  // namespace
}  // namespace hapax::worker
