// Moving positions and forgetting keys: what changes, what is refused, and what is kept of it.
#include "store/operator/operator.hpp"

#include <gtest/gtest.h>

#include "store/operator/inspect.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Operator : public testing::Test {
 protected:
  void checkpoint(const std::string& next_offset, int partition = 0) {
    database.run(
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, highest, "
        "highest_settled, generation, epoch, owner, key_spec, scope, started_runs) "
        "VALUES ('g', 't', " +
        std::to_string(partition) + ", " + next_offset +
        ", 150, 140, 2, 7, 'w', 'spec', 'scope', 3)");
  }

  void key(const std::string& status) {
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at) VALUES ('k', 's', '" +
        status + "', 'g', 't', 1, 0, 5, now() + interval '1 minute')");
  }

  std::int64_t move(Jump jump, std::int64_t to, bool dry_run = false) {
    return move_position(session, {"g", {"t", 0}, to, jump, "ann", "restored", dry_run}).offset;
  }

  // The key as an operator is shown it.
  nlohmann::json seen() {
    const Json rows = read_keys(session, "k");
    return rows.empty() ? Json{{"status", "completed"}, {"updated_at", ""}} : rows[0];
  }

  // next_offset|highest|epoch|start_as|started_runs
  std::string row() {
    return database.value(
        "SELECT next_offset, highest, epoch, start_as, started_runs FROM hapax.checkpoints");
  }

  test::Database database;
  Session session{database.owner()};
};

TEST_F(Operator, SkipsNoMoreThanItHasShown) {
  checkpoint("100");
  Move skip{"g", {"t", 0}, 200, Jump::skip, "ann", "restored", true};
  skip.seen = move_position(session, skip);
  skip.dry_run = false;
  for (const char* const change : {"next_offset = 40", "generation = 3"}) {
    database.run(std::string("UPDATE hapax.checkpoints SET ") + change);
    EXPECT_EQ(move_positions(session, {skip}).size(), 1U) << change;
    EXPECT_EQ(database.count("SELECT count(*) FROM hapax.position_changes"), 0);
    database.run("UPDATE hapax.checkpoints SET next_offset = 110, generation = 2");  // went on
  }
  EXPECT_EQ(move_positions(session, {skip}).size(), 0U);
  EXPECT_EQ(database.value("SELECT from_offset, to_offset FROM hapax.position_changes"), "110|200");
}

TEST_F(Operator, RewindsAndKeepsWhatWasReached) {
  checkpoint("100");
  EXPECT_EQ(move(Jump::rewind, 40), 100);
  EXPECT_EQ(row(), "40|150|8|checkpoint|0");
  EXPECT_EQ(database.value("SELECT generation, from_offset, to_offset, cause, who, why "
                           "FROM hapax.position_changes"),
            "2|100|40|rewind|ann|restored");
  EXPECT_EQ(database.value("SELECT who, action, target, why, facts->'before'->>'next_offset' "
                           "FROM hapax.operator_log"),
            "ann|offsets rewind|g t/0|restored|100");
}

TEST_F(Operator, SkipsAndRaisesWhatCountsAsReached) {
  checkpoint("100");
  EXPECT_EQ(move(Jump::skip, 200), 100);
  EXPECT_EQ(row(), "200|200|8|checkpoint|0");
}

TEST_F(Operator, RefusesTheWrongWayAndWhatNeverStarted) {
  EXPECT_THROW(move(Jump::skip, 5), Refused);
  checkpoint("100");
  EXPECT_THROW(move(Jump::rewind, 100), Refused);
  EXPECT_THROW(move(Jump::rewind, 101), Refused);
  EXPECT_THROW(move(Jump::skip, 99), Refused);
  database.run("UPDATE hapax.checkpoints SET next_offset = NULL");
  EXPECT_THROW(move(Jump::skip, 200), Refused);
  EXPECT_EQ(row(), "null|150|7|null|3");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.position_changes"), 0);
}

TEST_F(Operator, SkipsFromTheBeginningIfTheTopicWasMadeAgain) {
  checkpoint("NULL");
  EXPECT_THROW(move(Jump::skip, 200), Refused);
  database.run("UPDATE hapax.checkpoints SET start_as = 'initial', highest = NULL");
  EXPECT_EQ(move(Jump::skip, 120), 0);
  EXPECT_EQ(row(), "120|120|8|checkpoint|0");
}

TEST_F(Operator, ADryRunChangesNothing) {
  checkpoint("100");
  key("completed");
  EXPECT_EQ(move(Jump::rewind, 40, true), 100);
  EXPECT_EQ(forget_key(session, {"k", "s", ""}, seen(), "ann", "why", true).at("status"),
            "completed");
  EXPECT_EQ(row(), "100|150|7|null|3");
  EXPECT_EQ(database.value("SELECT status FROM hapax.idempotency_keys"), "completed");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.operator_log"), 0);
}

TEST_F(Operator, MovesSeveralTogetherButThoseThatAWorkerHasMovedOn) {
  for (const int partition : {0, 1, 2}) checkpoint(partition == 1 ? "300" : "100", partition);
  std::vector<Move> moves;
  for (const int partition : {0, 1, 2})
    moves.push_back({"g", {"t", partition}, 200, Jump::skip, "ann", "test data", true});
  const auto refused = move_positions(session, moves);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].find("t/1 stands at 300"), std::string::npos) << refused[0];
  EXPECT_EQ(database.value("SELECT string_agg(next_offset::text, ' ' ORDER BY partition) "
                           "FROM hapax.checkpoints"),
            "200 300 200");
}

TEST_F(Operator, MovesNoneIfOneCannotBeWaitedFor) {
  for (const int partition : {0, 1}) checkpoint("100", partition);
  Transaction holder(session);
  holder.run("SELECT 1 FROM hapax.checkpoints WHERE partition = 1 FOR UPDATE");
  ConnectOptions impatient = database.owner();
  impatient.lock_timeout = std::chrono::milliseconds(10);
  Session other(impatient);
  std::vector<Move> moves;
  for (const int partition : {0, 1})
    moves.push_back({"g", {"t", partition}, 40, Jump::rewind, "ann", "why", true});
  EXPECT_THROW(move_positions(other, moves), DatabaseError);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.checkpoints WHERE next_offset = 100"), 2);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.operator_log"), 0);
}

TEST_F(Operator, ForgetsNoKeyThatHasChangedSinceItWasShown) {
  key("failed");
  const nlohmann::json shown = seen();
  database.run("UPDATE hapax.idempotency_keys SET status = 'completed', updated_at = now()");
  EXPECT_THROW(forget_key(session, {"k", "s", ""}, shown, "ann", "why", false), Refused);
  EXPECT_EQ(database.value("SELECT status FROM hapax.idempotency_keys"), "completed");
}

TEST_F(Operator, AFrozenWorkerThatWakesCannotUndoAMove) {
  checkpoint("100");
  Session worker(database.worker());
  const std::string incarnation = read_store(worker).incarnation;
  move(Jump::rewind, 40);
  EXPECT_TRUE(write_checkpoints(worker, "g", {{{"t", 0}, incarnation, 7, 100, 120}}).empty());
  EXPECT_EQ(row(), "40|150|8|checkpoint|0");
}

TEST_F(Operator, ForgetsACompletedKeyForAWeekAtLeast) {
  key("completed");
  EXPECT_EQ(
      forget_key(session, {"k", "s", ""}, seen(), "ann", "wrong account", false).at("kafka_offset"),
      5);
  EXPECT_EQ(database.value("SELECT status, expires_at > now() + interval '6 days' "
                           "FROM hapax.idempotency_keys"),
            "forgotten|t");
  EXPECT_EQ(database.value("SELECT who, action, why, facts->'before'->>'status' "
                           "FROM hapax.operator_log"),
            "ann|keys forget|wrong account|completed");
}

// A gate's key waits for its outcome a century. Without its record, that outcome never comes.
TEST_F(Operator, AForgottenRequestOfAGateWaitsNoLonger) {
  key("completed");
  database.run("UPDATE hapax.idempotency_keys SET expires_at = now() + interval '100 years'");
  forget_key(session, {"k", "s", ""}, seen(), "ann", "its record is gone", false);
  EXPECT_EQ(database.value("SELECT expires_at BETWEEN now() + interval '6 days' AND now() + "
                           "interval '8 days' FROM hapax.idempotency_keys"),
            "t");
}

TEST_F(Operator, ForgetsTheRunsOfEachMessageOfTheKey) {
  key("failed");
  database.run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count,"
      " last_error, handler, next_try) SELECT g, 't', 1, 0, o, 2, 'no', 'h', now()"
      " FROM (VALUES ('g', 5), ('g', 6), ('other', 9), ('g', 7)) AS v (g, o);"
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset,"
      " timestamp_type, header_names, header_values, reason, error, attempts, handler,"
      " handler_version, scope, key, tenant, first_at) SELECT g, 't', 1, 0, o, 'none', '{}', '{}',"
      " 'attempts_exhausted', 'no', 2, 'h', '1', s, k, '', now()"
      " FROM (VALUES ('g', 6, 's', 'k'), ('other', 9, 's', 'k'), ('g', 7, 's', 'l')) AS v (g, o, "
      "s, k)");
  forget_key(session, {"k", "s", ""}, seen(), "ann", "the handler is mended", false);
  EXPECT_EQ(database.value("SELECT group_id, kafka_offset FROM hapax.attempts"), "g|7");
}

TEST_F(Operator, ForgetsNeitherWhatIsForgottenNorWhatIsUnderWayNorWhatIsGone) {
  EXPECT_THROW(forget_key(session, {"k", "s", ""}, seen(), "ann", "why", false), Refused);
  key("forgotten");
  EXPECT_THROW(forget_key(session, {"k", "s", ""}, seen(), "ann", "why", false), Refused);
  database.run("UPDATE hapax.idempotency_keys SET status = 'started'");
  EXPECT_THROW(forget_key(session, {"k", "s", ""}, seen(), "ann", "why", false), Refused);
}

TEST_F(Operator, TheWorkersRoleMayNotMovePositions) {
  checkpoint("100");
  Session worker(database.worker());
  EXPECT_THROW(move_position(worker, {"g", {"t", 0}, 40, Jump::rewind, "ann", "why", false}),
               DatabaseError);
  EXPECT_EQ(row(), "100|150|7|null|3");
}

}  // namespace
}  // namespace hapax::store
