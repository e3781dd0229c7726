// Replays by position beside an operator's decision `run`, which lets the message of a dead letter
// run again. One of the two takes effect.
#include <thread>

#include "flow/position_case.hpp"
#include "flow/replay_case.hpp"

namespace hapax::flow {
namespace {

class ReplayByPosition : public ReplayCase {
 protected:
  ReplayByPosition() { route.key.sources = {{key::Source::Kind::position, {}}}; }

  // Its partition was rewound to it and has halted there.
  std::int64_t dead_below_highest() {
    const std::int64_t letter = dead({.offset = 7});
    database.run(
        "DELETE FROM hapax.positions; INSERT INTO hapax.checkpoints (group_id, topic, partition, "
        "next_offset, highest, key_spec, scope) VALUES ('group', 'payments', 3, 7, 100, 'spec', "
        "'booking')");
    return letter;
  }
  void decide() {
    database.run(
        "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, "
        "kafka_offset, reason, detail, halted_by, ended_at, decision) VALUES ('group', 'payments', "
        "3, false, 1, 7, 'unknown_below_highest', '', 'w', clock_timestamp(), 'run')");
  }
  // As a worker starts it. Nothing: it waits for a transaction.
  std::optional<std::set<std::int64_t>> start() {
    store::Session session(database.worker());
    store::Taking next{"group", {"payments", 3}, "w", "spec", "booking", 0, true};
    next.read_epoch = store::read_checkpoint(session, "group", next.partition)->epoch;
    if (store::take_partition(session, next).value().settling) return std::nullopt;
    return store::read_known_messages(session, "group",
                                      {{next.partition, 1, 7, true}})[next.partition]
        .settled;
  }
  void expect_refused_for_now(std::int64_t letter) {
    want(letter);
    const Replayed replayed = run_next();
    EXPECT_EQ(replayed.result, ReplayResult::refused);
    EXPECT_NE(replayed.detail.find("may have taken effect"), std::string::npos) << replayed.detail;
  }
};

// The decision, and the start that follows, come while the replay's handler runs.
TEST_F(ReplayByPosition, TakesEffectInPlaceOfTheMessageThatIsLetRunMeanwhile) {
  want(dead_below_highest());
  const auto run_unless_settled = [&](const std::optional<std::set<std::int64_t>>& settled) {
    if (!settled || settled->contains(7)) return;
    EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  };
  const Replayed replayed = run_next([&](const Message& message, Context& context) {
    book(message, context);
    decide();
    run_unless_settled(start());
  });
  EXPECT_EQ(replayed.result, ReplayResult::completed);
  run_unless_settled(start());
  EXPECT_EQ(effects(), "k1=10");
}

// The message was let run first, and waits for its next try.
TEST_F(ReplayByPosition, IsRefusedWhileTheMessageIsToBeTriedAgain) {
  const std::int64_t letter = dead_below_highest();
  decide();
  EXPECT_EQ(process({.offset = 7}, [](auto&, auto&) { throw Retry("not yet"); }).result,
            Result::retry);
  expect_refused_for_now(letter);
  EXPECT_EQ(process({.offset = 7}, reject_it, {.attempts = 1}).result, Result::failed);
  want(letter);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(ReplayByPosition, RunsIfItsLetterIsOfARunBehindTheDecision) {
  const std::int64_t other = dead_below_highest();
  database.run("DELETE FROM hapax.dead_letters WHERE id = " + std::to_string(other));
  decide();
  route.retry.max_attempts = 1;
  want(dead({.offset = 7}, [](auto&, auto&) { throw Retry("not yet"); }));
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

// The last owner failed to run it. PostgreSQL commits that only when the next owner has read what
// failed, and has completed the message.
TEST_F(ReplayByPosition, IsRefusedThoughAFailedRunIsCommittedBehindTheEffect) {
  const std::int64_t letter = dead_below_highest();
  decide();
  database.run(
      "CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER stall AFTER INSERT ON hapax.attempts DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION stall()");
  store::Session session(database.owner());
  auto stalls = std::make_unique<store::Transaction>(session);
  stalls->run("SELECT pg_advisory_xact_lock(1)");
  Processor last = make_processor(2);
  std::thread failing(
      [&] { process_on(last, {.offset = 7}, [](auto&, auto&) { throw Retry("not yet"); }); });
  database.wait_until(
      "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = "
      "current_database()",
      "1");
  EXPECT_EQ(start(), std::set<std::int64_t>());
  EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  stalls.reset();
  failing.join();
  EXPECT_EQ(count("hapax.attempts"), 1);
  expect_refused_for_now(letter);
  EXPECT_EQ(effects(), "k1=10");
}

// A cautious worker has announced it, and it has taken effect.
TEST_F(ReplayByPosition, IsRefusedIfTheMessageWasOnlyAnnounced) {
  const std::int64_t letter = dead_below_highest();
  decide();
  EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  announce_crashes(1, 7);
  expect_refused_for_now(letter);
}

// The producer's repeat completed the key, before the route's key became the position.
TEST_F(ReplayByPosition, OfALetterThatHadAKeyIsRefusedThoughItIsEdited) {
  const auto by_position = std::exchange(
      route.key.sources, std::vector<key::Source>{{key::Source::Kind::header, {"id"}}});
  const std::int64_t letter = dead({.offset = 7});
  EXPECT_EQ(process({.offset = 8}).result, Result::completed);
  route.key.sources = by_position;
  want(letter, "99");
  const Replayed replayed = run_next();
  EXPECT_EQ(replayed.result, ReplayResult::refused);
  EXPECT_NE(replayed.detail.find("under the key \"k1\""), std::string::npos) << replayed.detail;
  EXPECT_EQ(effects(), "k1=10");
}

// Nothing would remove its row.
TEST_F(ReplayByPosition, KeepsNoRowBelowTheCheckpoint) {
  const std::int64_t letter = dead_below_highest();
  database.run("UPDATE hapax.checkpoints SET next_offset = 8");
  want(letter);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(count("hapax.positions"), 0);
}

}  // namespace
}  // namespace hapax::flow
