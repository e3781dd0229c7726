// Ending halts: what each decision does to the checkpoint, and what it refuses.
#include "store/operator/resume.hpp"

#include <gtest/gtest.h>

#include <iterator>

#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"
#include "support/database.hpp"
#include "worker/log_number.hpp"

namespace hapax::store {
namespace {

class Resume : public testing::Test {
 protected:
  // A checkpoint with everything set, as a worker leaves it.
  void checkpoint(const std::string& next_offset = "100", int partition = 0) {
    database.run(
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, highest,"
        " highest_settled, generation, epoch, owner, key_spec, scope, topic_id, cluster_id,"
        " started_runs)"
        " VALUES ('g', 't', " +
        std::to_string(partition) + ", " + next_offset +
        ", 150, 140, 2, 7, 'w', 'spec', 'scope', 'tid', 'cid', 3)");
  }

  void halt(const std::string& reason, const std::string& offset = "NULL", int partition = 0,
            const std::string& whole_route = "false", const std::string& group = "g") {
    database.run(
        "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation,"
        " kafka_offset, reason, detail, halted_by) VALUES ('" +
        group + "', 't', " + std::to_string(partition) + ", " + whole_route + ", 2, " + offset +
        ", '" + reason + "', 'detail', 'w')");
  }

  Resumed end(const std::string& decision, std::optional<std::int32_t> partition = 0,
              bool dry_run = false) {
    return resume(session, {"g", "t", partition, decision, "ann", "mended", "scope", dry_run});
  }

  // next_offset|highest|highest_settled|generation|epoch|key_spec|topic_id|cluster_id|start_as|
  // started_runs
  std::string row(int partition = 0) {
    return database.value(
        "SELECT next_offset, highest, highest_settled, generation, epoch, key_spec, topic_id,"
        " cluster_id, start_as, started_runs FROM hapax.checkpoints WHERE partition = " +
        std::to_string(partition));
  }

  int open_halts() {
    return database.count("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL");
  }

  test::Database database;
  Session session{database.owner()};
};

constexpr const char* kUntouched = "100|150|140|2|7|spec|tid|cid|null|3";

struct Case {
  const char* reason;
  const char* decision;
  const char* after;
};

class EachDecision : public Resume, public testing::WithParamInterface<Case> {};

TEST_P(EachDecision, LeavesTheCheckpointAsItsTextPromises) {
  checkpoint();
  halt(GetParam().reason, "42");
  EXPECT_EQ(end(GetParam().decision).halts.size(), 1U);
  EXPECT_EQ(row(), GetParam().after);
  EXPECT_EQ(database.value("SELECT ended_at IS NOT NULL, ended_by, why, decision FROM hapax.halts"),
            "t|ann|mended|" + std::string(GetParam().decision));
}

constexpr const char* kFenced = "100|150|140|2|8|spec|tid|cid|null|0";
constexpr const char* kAtCheckpoint = "100|150|140|2|8|spec|null|null|checkpoint|0";
constexpr const char* kNewGeneration = "null|null|null|3|8||null|null|initial|0";

INSTANTIATE_TEST_SUITE_P(
    Resume, EachDecision,
    testing::Values(Case{"unexpected_error", "retry", kFenced},
                    Case{"offset_unproven", "same_topic", kAtCheckpoint},
                    Case{"topic_recreated", "same_topic", kAtCheckpoint},
                    Case{"other_store", "same_topic", kAtCheckpoint},
                    Case{"other_cluster", "same_topic", kAtCheckpoint},
                    Case{"offset_above_end", "same_topic", kAtCheckpoint},
                    Case{"offset_unproven", "recreated", kNewGeneration},
                    Case{"topic_recreated", "recreated", kNewGeneration},
                    Case{"other_cluster", "recreated", kNewGeneration},
                    Case{"offset_above_end", "recreated", kNewGeneration},
                    Case{"offset_out_of_range", "recreated", kNewGeneration},
                    Case{"offset_out_of_range", "earliest",
                         "100|150|140|2|8|spec|tid|cid|earliest|0"},
                    Case{"key_spec_changed", "accept", "100|150|140|2|8|accepted|tid|cid|null|0"},
                    Case{"unknown_below_highest", "run", "100|42|140|2|8|spec|tid|cid|null|0"},
                    Case{"unknown_below_highest", "skip", kFenced},
                    Case{"handler_ended_transaction", "skip", kFenced},
                    Case{"cannot_account", "skip", kFenced}, Case{"unreadable", "skip", kFenced}));

TEST_F(Resume, RefusesADecisionThatDoesNotFit) {
  checkpoint();
  for (const char* const reason : {"checkpoint_missing", "offset_unproven", "key_spec_changed",
                                   "unexpected_error", "store_copied"}) {
    database.run("DELETE FROM hapax.halts");
    halt(reason, "42");
    for (const Decision& decision : all_decisions()) {
      if (decision.fits(reason)) continue;
      EXPECT_THROW(end(std::string(decision.name)), Refused) << reason << decision.name;
    }
    EXPECT_EQ(row(), kUntouched);
    EXPECT_EQ(open_halts(), 1);
  }
}

TEST_F(Resume, RefusesAllIfOneHaltDoesNotFit) {
  checkpoint();
  halt("unreadable", "42", 0);
  halt("key_spec_changed", "NULL", 1);
  EXPECT_THROW(end("skip", std::nullopt), Refused);
  EXPECT_EQ(open_halts(), 2);
  EXPECT_EQ(row(), kUntouched);
}

TEST_F(Resume, CannotSkipWhatTheHaltDoesNotName) {
  checkpoint();
  halt("unreadable");
  EXPECT_THROW(end("skip"), Refused);
}

TEST_F(Resume, AcceptsKafkaOnlyWithoutACheckpoint) {
  halt("checkpoint_missing");
  end("accept_kafka");
  const int first = database.count("SELECT epoch FROM hapax.checkpoints");
  EXPECT_EQ(row(), "null|null|null|3|" + std::to_string(first) + "||null|null|kafka|0");
  halt("checkpoint_missing");  // taken, but no start was agreed
  end("accept_kafka");
  EXPECT_EQ(row(), "null|null|null|3|" + std::to_string(first + 1) + "||null|null|kafka|0");
  database.run("UPDATE hapax.checkpoints SET next_offset = 5");
  halt("checkpoint_missing");
  EXPECT_THROW(end("accept_kafka"), Refused);
}

TEST_F(Resume, RefusesSameTopicIfNoStartWasAgreed) {
  checkpoint("NULL");
  halt("topic_recreated");
  EXPECT_THROW(end("same_topic"), Refused);
  EXPECT_EQ(open_halts(), 1);
}

TEST_F(Resume, RefusesSameTopicIfTheLogEndsBelowTheCheckpoint) {
  checkpoint();
  halt("offset_above_end");
  EXPECT_THROW(end("same_topic"), Refused);
  EXPECT_EQ(row(), kUntouched);
}

// So that no worker asks again for what it read before (worker::read_again).
TEST_F(Resume, SameTopicIsKnownToEveryLaterStart) {
  checkpoint();
  halt("offset_above_end", "40");
  EXPECT_EQ(read_checkpoint(session, "g", {"t", 0})->same_topic, 0);
  const auto id = static_cast<std::int64_t>(database.count("SELECT max(id) FROM hapax.halts"));
  end("same_topic");
  halt("unexpected_error", "41");
  end("retry");
  EXPECT_EQ(read_checkpoint(session, "g", {"t", 0})->same_topic, id);
}

// Keys of the group's real scope would not be held until its start.
TEST_F(Resume, RefusesToBeginWithoutTheScopeOfTheRoute) {
  for (const auto& [reason, decision] : {std::pair{"checkpoint_missing", "earliest"},
                                         {"checkpoint_missing", "accept_kafka"},
                                         {"topic_recreated", "recreated"}}) {
    halt(reason);
    EXPECT_THROW(resume(session, {"g", "t", 0, decision, "ann", "mended", "", false}), Refused);
    end("retry");
  }
}

TEST_F(Resume, MakesACheckpointIfTheDecisionNeedsOne) {
  halt("offset_out_of_range", "NULL", 0);
  end("earliest");
  const auto epoch = [&](int partition) {
    return database.value("SELECT epoch FROM hapax.checkpoints WHERE partition = " +
                          std::to_string(partition));
  };
  EXPECT_EQ(row(0), "null|null|null|3|" + epoch(0) + "||null|null|earliest|0");
  halt("offset_above_end", "NULL", 1);
  end("recreated", 1);
  EXPECT_EQ(row(1), "null|null|null|3|" + epoch(1) + "||null|null|initial|0");
}

// A renamed group may begin the new log first. It must not take the deleted log's number.
TEST_F(Resume, RecreatedNumbersTheLogAtOnceIfNoClientCanTellItsId) {
  const auto logs = [&] {
    return database.value(
        "SELECT string_agg(concat_ws('/', scope, cluster_id, topic_id, generation), ' ' ORDER BY "
        "scope, cluster_id, topic_id) FROM hapax.logs");
  };
  checkpoint();
  database.run(
      "INSERT INTO hapax.logs (scope, topic, partition, cluster_id, topic_id, generation) VALUES "
      "('scope', 't', 0, 'cid', '', 2), ('scope', 't', 0, 'mirror', '', 3), ('scope', 't', 0, "
      "'cid', 'id', 1), ('other', 't', 0, 'cid', '', 2)");
  const std::string before = logs();
  halt("other_cluster");  // nothing was made again
  end("recreated", 0, true);
  EXPECT_EQ(logs(), before);
  database.run("DELETE FROM hapax.halts");
  halt("offset_unproven");
  end("recreated");
  const std::string after = "other/cid//2 scope/cid//4 scope/cid/id/1 scope/mirror//3";
  EXPECT_EQ(logs(), after);
  database.run("UPDATE hapax.logs SET generation = 2 WHERE scope = 'scope' AND cluster_id = 'cid'");
  const std::string changed = logs();
  halt("offset_unproven");  // decided again before it has begun
  end("recreated");
  EXPECT_EQ(logs(), changed);
}

// In either order. Else the log would get a new number, and what was settled beyond the checkpoint
// would run again.
TEST_F(Resume, SameTopicAndAcceptGoOnUnderTheNumberOfTheirLog) {
  for (const bool accept_first : {false, true}) {
    checkpoint();
    for (const bool accept : {accept_first, !accept_first}) {
      halt(accept ? "key_spec_changed" : "topic_recreated");
      end(accept ? "accept" : "same_topic");
    }
    const auto row = read_checkpoint(session, "g", {"t", 0});
    EXPECT_TRUE(row->accepts("another"));
    const worker::LogFacts facts{"scope", "cid", "", row, {{"scope", "mirror", "", 3}}};
    EXPECT_EQ(std::get<worker::LogNumber>(worker::number_of_log(facts)).generation, 2);
    database.run("DELETE FROM hapax.checkpoints");
  }
}

TEST_F(Resume, DryRunChangesNothing) {
  checkpoint();
  halt("offset_unproven");
  EXPECT_EQ(end("recreated", 0, true).halts.size(), 1U);
  EXPECT_EQ(row(), kUntouched);
  EXPECT_EQ(open_halts(), 1);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.operator_log"), 0);
}

TEST_F(Resume, FencesEveryPartitionOfAHaltedRoute) {
  checkpoint("100", 0);
  checkpoint("100", 1);
  halt("handler_ended_transaction", "42", 1, "true");
  EXPECT_TRUE(end("skip", 1).halts.empty());  // the route is halted, not partition 1
  EXPECT_EQ(end("skip", std::nullopt).halts.size(), 1U);
  EXPECT_EQ(row(0), kFenced);
  EXPECT_EQ(row(1), kFenced);
}

TEST_F(Resume, LeavesOtherGroupsAndPartitionsAlone) {
  checkpoint("100", 0);
  checkpoint("100", 1);
  halt("unexpected_error", "1", 0);
  halt("unexpected_error", "1", 1);
  halt("unexpected_error", "1", 0, "false", "other");
  end("retry", 0);
  EXPECT_EQ(row(1), kUntouched);
  EXPECT_EQ(open_halts(), 2);
}

TEST_F(Resume, DecidesOnNoHaltThatTheOperatorWasNotShown) {
  checkpoint("100", 0);
  checkpoint("100", 1);
  halt("unexpected_error", "41", 0);
  Resumption wanted{"g", "t", std::nullopt, "skip", "ann", "seen", "scope"};
  wanted.seen.emplace();
  for (const Halt& seen : end("skip", std::nullopt, true).halts) wanted.seen->push_back(seen.id);
  halt("unexpected_error", "42", 1);
  EXPECT_THROW(resume(session, wanted), Refused);
  EXPECT_EQ(open_halts(), 2);
}

TEST_F(Resume, OfAMessageEndsNoHaltAtAnother) {
  checkpoint();
  halt("unexpected_error", "43");
  Resumption wanted{"g", "t", 0, "skip", "ann", "test data", "scope"};
  wanted.offset = 42;
  EXPECT_THROW(resume(session, wanted), Refused);
  wanted.offset = 43;
  EXPECT_EQ(resume(session, wanted).halts.size(), 1U);
  halt("handler_ended_transaction", "44", 0, "true");
  wanted.offset = 45;
  EXPECT_TRUE(resume(session, wanted).halts.empty());
  wanted.offset = 44;  // a route's, named by the message
  EXPECT_EQ(resume(session, wanted).halts.size(), 1U);
}

TEST_F(Resume, LogsTheRowsBeforeAndAfter) {
  checkpoint();
  halt("offset_unproven");
  end("recreated");
  EXPECT_EQ(database.value("SELECT who, action, target, why,"
                           " facts->'before'->0->>'next_offset', facts->'after'->0->>'generation',"
                           " facts->'halts'->0->>'reason' FROM hapax.operator_log"),
            "ann|resume recreated|g t/0|mended|100|3|offset_unproven");
}

TEST_F(Resume, FrozenWorkerCannotUndoIt) {
  checkpoint();
  halt("unexpected_error", "42");
  const std::string incarnation = read_store(session).incarnation;
  end("retry");
  const std::vector<CheckpointWrite> late = {{{"t", 0}, incarnation, 7, 100, 120}};
  EXPECT_TRUE(write_checkpoints(session, "g", late).empty());
}

TEST_F(Resume, DecidesOnCallsInDoubtForTheNextStart) {
  for (const char* decision : {"call", "as_unknown"}) {
    checkpoint();
    halt("tail_in_doubt");
    end(decision);
    EXPECT_EQ(row(), kFenced);
    EXPECT_EQ(database.value("SELECT group_id, topic, partition, below, decided FROM hapax.doubts"),
              std::string("g|t|0|0|") + decision);
    database.run("DELETE FROM hapax.checkpoints");
  }
  halt("tail_in_doubt");
  EXPECT_THROW(end("call"), Refused) << "its checkpoint is gone";
}

TEST_F(Resume, MovedKeepsTheIdAndTheCheckpoints) {
  database.run("UPDATE hapax.store SET database_oid = 1");
  ASSERT_TRUE(read_store(session).copied);
  const std::string id = read_store(session).id;
  checkpoint();
  halt("store_copied", "NULL", 0);
  halt("store_copied", "NULL", 0, "false", "other");
  EXPECT_EQ(end("moved").halts.size(), 2U);  // it is about the database, so about every group
  EXPECT_FALSE(read_store(session).copied);
  EXPECT_EQ(read_store(session).id, id);
  EXPECT_EQ(row(), kUntouched);
  EXPECT_EQ(open_halts(), 0);
}

TEST_F(Resume, CopyGetsAnIdOfItsOwnAndNoCheckpoints) {
  database.run("UPDATE hapax.store SET database_oid = 1");
  const std::string id = read_store(session).id;
  checkpoint();
  database.run(
      "INSERT INTO hapax.passed (group_id, topic, partition, epoch, until) "
      "VALUES ('g', 't', 0, 7, now())");
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) VALUES ('g', 't', 1, 0, 7, 'none', '{}', '{}', "
      "'rejected', 'no', 1, 'h', '1', 's', now());"
      "INSERT INTO hapax.replays (dead_letter, who, why) SELECT id, 'ann', 'fixed' "
      "FROM hapax.dead_letters");
  halt("store_copied");
  end("copy");
  EXPECT_EQ(database.value("SELECT outcome FROM hapax.replays"), "cancelled");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL"), 0)
      << "the original publishes it";
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.passed"), 0);
  EXPECT_FALSE(read_store(session).copied);
  EXPECT_NE(read_store(session).id, id);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.checkpoints"), 0);
  EXPECT_EQ(database.value("SELECT facts->'deleted_checkpoints'->0->>'next_offset'"
                           " FROM hapax.operator_log"),
            "100");
}

TEST_F(Resume, TheWorkersRoleMayNot) {
  checkpoint();
  halt("unexpected_error", "42");
  Session worker(database.worker());
  EXPECT_THROW(resume(worker, {"g", "t", 0, "retry", "ann", "mended", "scope", false}),
               DatabaseError);
  EXPECT_EQ(open_halts(), 1);
}

// The rights of sql/operator.psql are enough for it, and not for the database's own decisions.
TEST_F(Resume, TheOperatorsRoleMay) {
  Session operator_session(database.make_operator());
  const auto decide = [&](const std::string& decision) {
    return resume(operator_session, {"g", "t", 0, decision, "ann", "mended", "scope", false});
  };
  halt("checkpoint_missing");
  EXPECT_EQ(decide("accept_kafka").halts.size(), 1U);
  halt("unexpected_error", "42");
  EXPECT_EQ(decide("skip").halts.size(), 1U);
  halt("offset_unproven");
  EXPECT_EQ(decide("recreated").halts.size(), 1U);
  halt("store_copied");
  EXPECT_THROW(decide("copy"), DatabaseError);
}

}  // namespace
}  // namespace hapax::store
