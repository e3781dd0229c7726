// What operators order about dead letters, in the operator's role. Each order takes effect once,
// even if others order or run the same letter. hapax.operator_log has all orders.
#include "store/operator/dead_letter_orders.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "store/message/replays.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Orders : public testing::Test {
 protected:
  Orders() { session.emplace(database.make_operator()); }

  LetterIds letters(int count) {
    database.run(
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset,"
        " timestamp_type, header_names, header_values, reason, error, attempts, handler,"
        " handler_version, scope, key, first_at) SELECT 'g', 't', 1, 0, n, 'none', '{}', '{}',"
        " CASE WHEN n % 2 = 0 THEN 'rejected' ELSE 'missing_key' END, 'error ' || n, 1, 'h', '1',"
        " 's', 'k' || n, now() FROM generate_series(1, " +
        std::to_string(count) + ") n");
    return ids(page_of(*session, {"g"}));
  }
  static LetterIds ids(const Json& page) {
    LetterIds found;
    for (const Json& row : page) found.push_back(row.at("id").get<std::int64_t>());
    return found;
  }
  Wanted want(const LetterIds& which, const std::string& who = "ann") {
    return want_replays(*session, {"g", who, "mended"}, which, std::nullopt);
  }
  std::optional<ClaimedReplay> claim() {
    Session worker(database.worker());
    return claim_replay(worker, "g", {"t"}, "w", std::chrono::hours(1));
  }
  std::string log() {
    return database.value("SELECT who, action, target, why FROM hapax.operator_log ORDER BY id");
  }

  test::Database database;
  std::optional<Session> session;
};

// The order is in the table then, and no answer may deny it.
TEST_F(Orders, AreAddedIfTheReplayBeforeEndsInThatMoment) {
  const LetterIds all = letters(1);
  want(all);
  Session worker(database.owner());
  Transaction ending(worker);
  ending.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'failed'");
  auto wanting = std::async([&] { return want(all, "bob"); });
  database.wait_until(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event_type = 'Lock'",
      "1");
  ending.commit();
  const Wanted wanted = wanting.get();
  EXPECT_EQ(wanted.added.size(), 1U);
  EXPECT_TRUE(wanted.wanted_before.empty());
}

TEST_F(Orders, WantEachLetterOnce) {
  const LetterIds all = letters(3);
  EXPECT_EQ(want({all[0], all[1]}).added.size(), 2U);
  const Wanted second = want(all, "bob");
  EXPECT_EQ(second.added.size(), 1U);
  ASSERT_EQ(second.wanted_before.size(), 2U);
  EXPECT_EQ(second.wanted_before[0].at("who"), "ann");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.replays"), 3);
  EXPECT_EQ(log(),
            "ann|dead replay|g dead letters: 2|mended\nbob|dead replay|g dead letters: 1|mended");
}

TEST_F(Orders, WantNothingThatIsEnded) {
  const LetterIds all = letters(2);
  discard(*session, {"g", "ann", "old"}, {all[0]});
  const Wanted wanted = want(all);
  EXPECT_EQ(wanted.added.size(), 1U);
  EXPECT_EQ(wanted.ended, 1U);
}

// Only its coordinates and its error are kept, so there is nothing to run.
TEST_F(Orders, WantALetterWithoutItsBytesOnlyWithAnotherPayload) {
  const LetterIds all = letters(3);
  database.run(R"(UPDATE hapax.dead_letters SET other = '{"bytes_kept": false}' WHERE id = 1)");
  database.run(
      "UPDATE hapax.dead_letters SET error = 'no (the message itself could not be kept: row is too "
      "big)' WHERE id = 2");
  const Wanted wanted = want(all);
  EXPECT_EQ(wanted.added.size(), 1U);
  EXPECT_EQ(wanted.without_bytes, (LetterIds{all[0], all[1]}));
  EXPECT_EQ(database.value("SELECT dead_letter FROM hapax.replays"), "3");
  const Wanted edited =
      want_replays(*session, {"g", "ann", "read from Kafka"}, {all[0]}, Replacement{"{}"});
  EXPECT_EQ(edited.added.size(), 1U);
}

TEST_F(Orders, SecondOfTwoOperatorsWaitsAndSeesTheFirst) {
  const LetterIds all = letters(1);
  Session other(database.owner());
  Transaction first(other);
  first.run("SELECT FROM hapax.dead_letters FOR NO KEY UPDATE");
  first.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  std::optional<Wanted> wanted;
  {
    std::jthread second([&] { wanted = want(all); });
    database.wait_until(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'hapax_operator' AND "
        "wait_event_type = 'Lock'",
        "1");
    first.commit();
  }
  EXPECT_EQ(wanted->added.size(), 0U);
  EXPECT_EQ(wanted->ended, 1U);
}

TEST_F(Orders, CancelWhatNoWorkerHasClaimed) {
  const LetterIds all = letters(2);
  want(all);
  ASSERT_TRUE(claim());
  const Cancelled done = cancel_replays(*session, {"g", "bob", "stop"}, all);
  EXPECT_EQ(done.letters, LetterIds{all[1]});
  EXPECT_EQ(done.running, 1U);
  EXPECT_EQ(database.value("SELECT outcome, detail FROM hapax.replays ORDER BY id"),
            "null|null\ncancelled|bob: stop");
  EXPECT_EQ(want({all[1]}).added.size(), 1U) << "a cancelled one may be wanted again";
}

TEST_F(Orders, DiscardKeepsTheRowAndCancelsItsReplay) {
  const LetterIds all = letters(2);
  want({all[0]});
  const Discarded done = discard(*session, {"g", "ann", "test message"}, all);
  EXPECT_EQ(done.letters.size(), 2U);
  EXPECT_EQ(database.value("SELECT ended_as, ended_by, ended_why FROM hapax.dead_letters"),
            "discarded|ann|test message\ndiscarded|ann|test message");
  EXPECT_EQ(database.value("SELECT outcome FROM hapax.replays"), "cancelled");
  EXPECT_EQ(claim(), std::nullopt);
  EXPECT_EQ(discard(*session, {"g", "bob", "again"}, all).ended, 2U);
  EXPECT_EQ(database.value("SELECT ended_by FROM hapax.dead_letters LIMIT 1"), "ann");
}

TEST_F(Orders, DiscardLeavesAloneWhatAWorkerRuns) {
  const LetterIds all = letters(1);
  want(all);
  const auto claimed = claim();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(discard(*session, {"g", "ann", "old"}, all).running, 1U);
  // And what has the row locked, though its lease has run out.
  Session worker(database.worker());
  Transaction run(worker);
  ASSERT_TRUE(lock_replay(run, *claimed));
  const Discarded done = discard(*session, {"g", "ann", "old"}, all);
  EXPECT_EQ(done.running, 1U);
  EXPECT_EQ(done.letters.size(), 0U);
}

TEST_F(Orders, PagesHoldWhatFitsOldestFirst) {
  const LetterIds all = letters(kLettersAtOnce + 10);
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kLettersAtOnce));
  OpenLetters open{"g"};
  open.above = all.back();
  EXPECT_EQ(page_of(*session, open).size(), 10U);
  open = {"g"};
  open.reason = "rejected";
  open.error = "error 51";
  EXPECT_EQ(page_of(*session, open).size(), 1U);  // 510
  open.error = "%";
  EXPECT_EQ(page_of(*session, open).size(), 0U);
  open = {"g"};
  open.key = "k7";
  EXPECT_EQ(ids(page_of(*session, open)), LetterIds{all[6]});
  open = {"g"};
  open.ids = {all[3], all[1], 999'999};
  EXPECT_EQ(ids(page_of(*session, open)), (LetterIds{all[1], all[3]}));
  open = {"g"};
  open.until = std::chrono::hours(1);
  EXPECT_EQ(page_of(*session, open).size(), 0U);
  database.run("UPDATE hapax.dead_letters SET created_at = now() - interval '2h' WHERE id = " +
               std::to_string(all[0]));
  EXPECT_EQ(page_of(*session, open).size(), 1U);
  open = {"other"};
  EXPECT_EQ(page_of(*session, open).size(), 0U);
}

TEST_F(Orders, CountsAndListsTellOpenOnesFromEnded) {
  const LetterIds all = letters(4);
  discard(*session, {"g", "ann", "old"}, {all[0], all[1]});
  EXPECT_EQ(count_dead_letters(*session, "g"),
            Json::parse(R"([{"reason":"missing_key","count":1,"completed_since":0},
                              {"reason":"rejected","count":1,"completed_since":0}])"));
  DeadLetterFilter filter;
  filter.group = "g";
  EXPECT_EQ(list_dead_letters(*session, filter).rows.size(), 4U);
  filter.state = "open";
  EXPECT_EQ(list_dead_letters(*session, filter).rows.size(), 2U);
  filter.state = "discarded";
  filter.error = "error 2";
  EXPECT_EQ(list_dead_letters(*session, filter).rows.size(), 1U);
  filter.key = "k2";
  EXPECT_EQ(list_dead_letters(*session, filter).rows.size(), 1U);
  filter.until = std::chrono::hours(1);
  EXPECT_EQ(list_dead_letters(*session, filter).rows.size(), 0U);
}

TEST_F(Orders, WorkersRoleMayNotGiveThem) {
  const LetterIds all = letters(1);
  session.emplace(database.worker());
  EXPECT_THROW(want(all), DatabaseError);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.replays"), 0);
}

TEST_F(Orders, StatusStillCountsOnASchemaWithoutReplays) {
  letters(2);
  database.run("DROP TABLE hapax.replays");
  EXPECT_EQ(count_dead_letters(*session, "g").size(), 2U);
}

}  // namespace
}  // namespace hapax::store
