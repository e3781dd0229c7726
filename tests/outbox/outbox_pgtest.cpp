// The relay's steps with hapax.outbox, as the worker role.
#include "store/worker/outbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "sandbox/proxy.hpp"
#include "store/operator/migrate.hpp"
#include "store/transaction.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox_headers.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using namespace std::chrono_literals;

class Outbox : public testing::Test {
 protected:
  // Rows of a topic; their ids go up.
  static std::string rows(const std::string& topic, int count, const std::string& key = "'k'",
                          const std::string& payload = "'p'") {
    return "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
           "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
           "SELECT 'g', '" +
           topic + "', " + key + ", " + payload +
           ", '[]', 'x', 's', 1, 0, n FROM generate_series(1, " + std::to_string(count) + ") n;";
  }
  OutboxLease lease(const std::string& holder = "one") {
    return *take_outbox_lease(session, "g", holder, read_store(session).incarnation, 10s);
  }
  static std::vector<std::int64_t> ids(const std::optional<OutboxRead>& read) {
    std::vector<std::int64_t> ids;
    for (const OutboxRow& row : read->rows) ids.push_back(row.id);
    return ids;
  }
  static OutboxStep reading(std::map<std::string, std::int64_t> topics) {
    return {std::move(topics), {}, 100, 1 << 20, 10s};
  }
  using Ids = std::vector<std::int64_t>;

  test::Database database;
  Session session{database.worker()};
};

TEST_F(Outbox, IsNotThereOnTheSchemaBefore) {
  EXPECT_TRUE(has_outbox(session));
  Session owner(database.owner());
  migrate_down(owner, kOutboxSchema - 1);
  EXPECT_FALSE(has_outbox(session));
  EXPECT_EQ(schema_problem(session), std::nullopt) << "a worker that publishes nothing can run";
  EXPECT_NE(schema_problem(session, kOutboxSchema)->find("migrate up"), std::string::npos);
}

TEST_F(Outbox, IsReadInTheOrderOfIdsEachTopicBehindItsMark) {
  database.run(rows("a", 2) + rows("b", 2) + rows("a", 1) + rows("c", 1));
  database.run("UPDATE hapax.outbox SET group_id = 'other' WHERE id = 2");
  EXPECT_EQ(ids(step_outbox(session, lease(), reading({{"a", 0}, {"b", 3}}))), (Ids{1, 4, 5}));
  using Topics = std::set<std::string>;
  EXPECT_EQ(new_outbox_topics(session, "g", {}), (Topics{"a", "b", "c"}));
  EXPECT_EQ(new_outbox_topics(session, "g", {"0", "b", "z"}), (Topics{"a", "c"}));
  EXPECT_EQ(new_outbox_topics(session, "g", {"a", "b", "c"}), Topics{});
  EXPECT_TRUE(peek_outbox(session, "g", {{"a", 4}}));
  EXPECT_FALSE(peek_outbox(session, "g", {{"a", 5}}));
}

TEST_F(Outbox, TellsWhichTopicsHaveARecordBehindTheirMark) {
  database.run(rows("a", 2) + rows("b", 2) + rows("c", 1, "'bad'"));
  using Topics = std::set<std::string>;
  EXPECT_EQ(find_behind_marks(session, "g", {{"a", 0}, {"b", 3}}), Topics{"b"});
  EXPECT_EQ(find_behind_marks(session, "g", {{"a", 1}, {"b", 2}}), Topics{"a"});
  const OutboxLease mine = lease();
  ASSERT_TRUE(halt_outbox(session, mine, {"c", 5, "record_refused", ""}, "w"));
  ASSERT_TRUE(halt_outbox(session, mine, {"a", {}, "topic_refused", ""}, "w"));
  EXPECT_EQ(find_behind_marks(session, "g", {{"a", 9}, {"b", 9}, {"c", 9}}), Topics{"b"});
}

TEST_F(Outbox, KeepsEveryByteOfARecord) {
  const OutboxHeaders headers = {
      {"a", "b"}, {"a", std::nullopt}, {"bytes", std::string("\xff\0", 2)}, {"", "\"\\é"}};
  database.run(rows("a", 1, "'\\x00ff'", "NULL"));
  {
    Transaction transaction(session);
    transaction.run("SELECT 1");
  }
  database.run("UPDATE hapax.outbox SET headers = $q$" + outbox_headers_text(headers) + "$q$");
  const auto read = step_outbox(session, lease(), reading({{"a", 0}}));
  EXPECT_EQ(read->rows[0].key, std::string("\0\xff", 2));
  EXPECT_EQ(read->rows[0].payload, std::nullopt);
  EXPECT_EQ(read->rows[0].headers, headers);
}

TEST_F(Outbox, IsBoundedByRecordsAndByBytesOfATopicButOneComesInAnyCase) {
  database.run(rows("a", 5, "'k'", "convert_to(repeat('x', 1000), 'UTF8')") + rows("b", 150));
  OutboxStep step = reading({{"a", 0}, {"b", 0}});
  step.most_bytes = 2500;
  const auto read = step_outbox(session, lease(), step);
  EXPECT_EQ(read->rows.size(), 103U);
  step.most_bytes = 1;
  EXPECT_EQ(ids(step_outbox(session, lease(), step)), (Ids{1, 6}));
}

// A stranger's correlation id is handed on in them, byte for byte. Control bytes are six bytes each
// in the text, and equal bytes are few on disk.
TEST_F(Outbox, IsBoundedByTheBytesOfHeaders) {
  const auto with_headers = [&](const std::string& value) {
    database.run(rows("a", 5, "NULL", "''") +
                 "UPDATE hapax.outbox SET headers = json_build_array(" +
                 "json_build_array('correlation-id', " + value + "));");
    OutboxStep step = reading({{"a", 0}});
    step.most_bytes = 2'500'000;
    const auto read = step_outbox(session, lease(), step);
    const auto kept = database.count("SELECT max(octet_length(headers::text)) FROM hapax.outbox");
    EXPECT_EQ(read->rows.at(0).bytes, static_cast<std::size_t>(kept));
    database.run("DELETE FROM hapax.outbox");
    return read->rows.size();
  };
  EXPECT_EQ(with_headers("repeat('x', 1000000)"), 3U);
  EXPECT_EQ(with_headers("repeat(chr(1), 200000)"), 3U);
  EXPECT_EQ(with_headers("(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 31250) n)"),
            3U);
}

// A cursor over ids would pass over a row whose transaction commits late.
TEST_F(Outbox, NamesTheTransactionsThatMayStillLeaveALowerId) {
  Session late(database.worker());
  Transaction open(late);
  open.run(rows("a", 1));
  database.run(rows("a", 1));
  const OutboxLease mine = lease();
  const auto read = step_outbox(session, mine, reading({{"a", 0}}));
  EXPECT_EQ(ids(read), Ids{2});
  ASSERT_EQ(read->writers.size(), 1U);
  open.commit();
  const auto after = step_outbox(session, mine, reading({{"a", 0}}));
  EXPECT_EQ(ids(after), (Ids{1, 2}));
  EXPECT_TRUE(after->writers.empty());
}

// Each would hold up a horizon made of pg_snapshot_xmin.
TEST_F(Outbox, IsNotHeldUpByOtherDatabasesAndHandlersThatHavePublishedNothing) {
  test::Database other;
  other.run("CREATE TABLE t (n int)");
  Session foreign(other.owner());
  Transaction foreign_writer(foreign);
  foreign_writer.run("INSERT INTO public.t VALUES (1)");
  Session handler(database.owner());
  database.run("CREATE TABLE t (n int)");
  Transaction slow_handler(handler);
  slow_handler.run("INSERT INTO public.t VALUES (1)");
  database.run(rows("a", 1));
  const auto read = step_outbox(session, lease(), reading({{"a", 0}}));
  EXPECT_EQ(ids(read), Ids{1});
  EXPECT_TRUE(read->writers.empty());
}

TEST_F(Outbox, RemovesWhatIsAcknowledgedBeforeItReadsOn) {
  database.run(rows("a", 3) + rows("b", 1));
  OutboxStep step = reading({{"a", 0}, {"b", 0}});
  step.acknowledged = {{"a", 1}, {"a", 3}};
  EXPECT_EQ(ids(step_outbox(session, lease(), step)), (Ids{2, 4}));
}

TEST_F(Outbox, IsOneRelaysAtATime) {
  const OutboxLease first = lease("one");
  EXPECT_FALSE(take_outbox_lease(session, "g", "two", first.incarnation, 10s));
  EXPECT_TRUE(take_outbox_lease(session, "other group", "two", first.incarnation, 10s));
  release_outbox_lease(session, first);
  EXPECT_EQ(take_outbox_lease(session, "g", "two", first.incarnation, 10s)->epoch, first.epoch + 1);
}

// A relay that was frozen beyond its lease.
TEST_F(Outbox, IsNotTouchedByARelayThatWasTakenOver) {
  database.run(rows("a", 2));
  const OutboxLease frozen = lease("frozen");
  database.run("UPDATE hapax.leases SET until = now() - interval '1 s'");
  const OutboxLease now = lease("new");
  OutboxStep step = reading({{"a", 0}});
  step.acknowledged = {{"a", 1}};
  EXPECT_FALSE(step_outbox(session, frozen, step));
  EXPECT_FALSE(halt_outbox(session, frozen, {"a", 1, "r", "d"}, "frozen"));
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 2);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox_halts"), 0);
  EXPECT_EQ(ids(step_outbox(session, now, step)), Ids{2});
}

// It reads from the beginning after a take-over, perhaps for longer than a lease. If its lease had
// run out by then, relays would take it from one another, and none would ever send.
TEST_F(Outbox, IsLeasedAfreshAtTheEndOfAStepThatTookLong) {
  const auto lease_time = 1s;
  database.run(rows("a", 1));
  const OutboxLease mine =
      *take_outbox_lease(session, "g", "one", read_store(session).incarnation, lease_time);
  Session owner(database.owner());
  Transaction blocks(owner);
  blocks.run("LOCK TABLE hapax.outbox_halts IN ACCESS EXCLUSIVE MODE");
  OutboxStep step = reading({{"a", 0}});
  step.lease = lease_time;
  auto stepping = std::async([&] { return step_outbox(session, mine, step); });
  database.wait_until(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event_type = 'Lock' AND xact_start < clock_timestamp() - interval '1 s'",
      "1");
  const std::string slow_until = database.value("SELECT clock_timestamp()");
  const auto reckoned = LeaseClock::now();
  blocks.rollback();
  const auto read = stepping.get();
  EXPECT_EQ(ids(read), Ids{1});
  EXPECT_GE(read->renewed_at, reckoned);
  EXPECT_EQ(database.value("SELECT until - interval '1 s' >= '" + slow_until +
                           "' FROM hapax.leases WHERE holder = 'one'"),
            "t");
}

// Each version of the row stays while an old snapshot is open (pg_dump), and each step reads all.
TEST_F(Outbox, IsLeasedAfreshOnlyIfThatIsDue) {
  const OutboxLease mine = lease();
  const auto version = [&] { return database.value("SELECT xmin, until FROM hapax.leases"); };
  const std::string before = version();
  OutboxStep step = reading({{"a", 0}});
  step.renewed_at = LeaseClock::now();
  EXPECT_EQ(step_outbox(session, mine, step)->renewed_at, step.renewed_at);
  EXPECT_EQ(version(), before);
  const auto now = LeaseClock::now();
  step.renewed_at = now - step.lease / 5;
  EXPECT_GE(step_outbox(session, mine, step)->renewed_at, now);
  EXPECT_NE(version(), before);
}

// What a relay has locked would hold up the next one for as long as it stands still.
TEST_F(Outbox, IsFreeOnceARelayHasStoodStillWithinAStepForALease) {
  const auto lease_time = 1s;
  database.run(rows("a", 1));
  std::atomic<bool> armed = false;
  std::promise<void> stands, goes_on;
  const auto goes = goes_on.get_future().share();
  const ConnectOptions direct = database.worker();
  sandbox::Proxy proxy({"127.0.0.1", std::to_string(test::postgres().port())}, {},
                       [&](int, sandbox::Proxy::From from, const std::string& text) {
                         using enum sandbox::Proxy::From;
                         if (from == client && text.ends_with(std::string_view("COMMIT", 7)) &&
                             armed.exchange(false)) {
                           stands.set_value();
                           goes.wait();
                         }
                         return sandbox::Proxy::Then::forward;
                       });
  Session frozen(test::through_port(direct, proxy.port()));
  const OutboxLease mine =
      *take_outbox_lease(frozen, "g", "one", read_store(session).incarnation, lease_time);
  OutboxStep step = reading({{"a", 0}});
  step.lease = lease_time;
  step.acknowledged = {{"a", 1}};
  armed = true;
  auto stepping = std::async([&] { return step_outbox(frozen, mine, step); });
  stands.get_future().wait();
  std::optional<OutboxLease> next;
  EXPECT_NO_THROW(next = take_outbox_lease(session, "g", "two", mine.incarnation, 10s));
  goes_on.set_value();
  EXPECT_THROW(stepping.get(), DatabaseError);
  ASSERT_TRUE(next);
  EXPECT_EQ(ids(step_outbox(session, *next, reading({{"a", 0}}))), Ids{1});
}

TEST_F(Outbox, IsNotTouchedUnderAnEpochThatItsOwnHolderHasLeft) {
  database.run(rows("a", 1));
  const OutboxLease before = lease("one");
  const OutboxLease now = lease("one");
  EXPECT_FALSE(step_outbox(session, before, reading({{"a", 0}})));
  EXPECT_EQ(ids(step_outbox(session, now, reading({{"a", 0}}))), Ids{1});
}

// After a failover that lost the tail the same ids may name other rows.
TEST_F(Outbox, IsNotTouchedAfterPostgresLostItsTail) {
  database.run(rows("a", 1));
  const OutboxLease before = lease();
  database.run("DELETE FROM hapax.incarnation");
  OutboxStep step = reading({{"a", 0}});
  step.acknowledged = {{"a", 1}};
  EXPECT_FALSE(step_outbox(session, before, step));
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 1);
  EXPECT_EQ(ids(step_outbox(session, lease(), reading({{"a", 0}}))), Ids{1});
}

// P4: what is returned can be sent, so it must be on the disk by then.
TEST_F(Outbox, ReturnsOnlyWhatIsFlushed) {
  database.run("ALTER DATABASE " + database.name() + " SET synchronous_commit = off");
  session = Session(database.worker());
  const OutboxLease mine = lease();
  for (int i = 0; i < 20; ++i) {
    database.run("SET synchronous_commit = off; " + rows("a", 1));
    const std::string written = database.value("SELECT pg_current_wal_insert_lsn()");
    ASSERT_FALSE(step_outbox(session, mine, reading({{"a", 0}}))->rows.empty());
    EXPECT_EQ(database.value("SELECT pg_current_wal_flush_lsn() >= '" + written + "'"), "t");
  }
}

TEST_F(Outbox, LeavesOutTheKeyOfARefusedRecordAndNoOther) {
  database.run(rows("a", 1, "'bad'") + rows("a", 1, "'good'") + rows("a", 1, "'bad'") +
               rows("a", 2, "NULL") + rows("b", 1, "'bad'"));
  const OutboxLease mine = lease();
  ASSERT_TRUE(halt_outbox(session, mine, {"a", 1, "record_refused", "too large"}, "w"));
  const std::map<std::string, std::int64_t> all = {{"a", 0}, {"b", 0}};
  const auto read = step_outbox(session, mine, reading(all));
  EXPECT_EQ(ids(read), (Ids{2, 4, 5, 6}));
  EXPECT_EQ(read->halts.size(), 1U);
  // A record without a key waits alone.
  ASSERT_TRUE(halt_outbox(session, mine, {"a", 4, "record_refused", "too large"}, "w"));
  EXPECT_EQ(ids(step_outbox(session, mine, reading(all))), (Ids{2, 5, 6}));
  ASSERT_TRUE(halt_outbox(session, mine, {"a", {}, "topic_refused", "gone"}, "w"));
  EXPECT_EQ(ids(step_outbox(session, mine, reading(all))), Ids{6});
  EXPECT_FALSE(peek_outbox(session, "g", {{"a", 0}}));
  EXPECT_EQ(measure_outbox(session, "g", all).unsent, 6U);
  EXPECT_EQ(measure_outbox(session, "g", {{"a", 3}}).unsent, 2U);
  database.run("UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'retry'");
  EXPECT_EQ(ids(step_outbox(session, mine, reading(all))).size(), 6U);
}

// The relay sends nothing while it measures, and its lease runs.
TEST_F(Outbox, IsMeasuredForASecondAtMost) {
  Session owner(database.owner());
  Transaction blocks(owner);
  blocks.run("LOCK TABLE hapax.outbox IN ACCESS EXCLUSIVE MODE");
  try {
    measure_outbox(session, "g", {{"a", 0}});
    FAIL() << "it did not wait for the lock";
  } catch (const DatabaseError& error) {
    EXPECT_EQ(error.sqlstate(), "57014") << error.what();
  }
}

// With plans that were made while it was empty, on a table that was never analyzed.
TEST_F(Outbox, IsReadInStepsThatCostWhatTheyReturn) {
  constexpr int kSteps = 20;
  constexpr int kEach = 100;
  database.run("ALTER TABLE hapax.outbox SET (autovacuum_enabled = off)");
  const OutboxLease mine = lease();
  OutboxStep step = reading({{"a", 0}, {"b", 0}});
  step.acknowledged = {{"a", 1}};
  for (int i = 0; i < 10; ++i) {
    (void)peek_outbox(session, "g", step.topics);
    (void)step_outbox(session, mine, step);
  }
  database.run(rows("a", 20'000));
  const auto read_so_far = [&] {
    Transaction transaction(session);
    transaction.run("SELECT pg_stat_force_next_flush()");
    transaction.commit();
    return database.count(
        "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'outbox') + "
        "(SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'outbox')");
  };
  const int before = read_so_far();
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_TRUE(peek_outbox(session, "g", step.topics));
    const auto read = step_outbox(session, mine, step);
    ASSERT_EQ(read->rows.size(), static_cast<std::size_t>(kEach));
    step.acknowledged.clear();
    for (const OutboxRow& row : read->rows) step.acknowledged.emplace_back("a", row.id);
    step.topics["a"] = read->rows.back().id;
  }
  EXPECT_LT(read_so_far() - before, 5 * kSteps * kEach);
}

// Halted records must not use up what a step may read.
TEST_F(Outbox, ReadsOnBehindManyHaltedRecords) {
  database.run(rows("a", 500, "'bad'") + rows("a", 1, "'good'"));
  const OutboxLease mine = lease();
  ASSERT_TRUE(halt_outbox(session, mine, {"a", 1, "record_refused", ""}, "w"));
  EXPECT_EQ(ids(step_outbox(session, mine, reading({{"a", 0}}))), Ids{501});
}

}  // namespace
}  // namespace hapax::store
