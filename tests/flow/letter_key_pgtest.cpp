// Letters of messages that were given up before their run: each takes its key, as others do.
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

using LetterKey = FlowCase;

// Its key would expire before its letter: a replay could not tell any more.
TEST_F(LetterKey, WritesNoLetterOfADuplicateThatIsSkippedOrKilledTheProcess) {
  process({.offset = 1});
  EXPECT_EQ(process({.offset = 2}, book, {.skip = "ann: poisonous"}).result, Result::duplicate);
  announce_crashes(route.retry.max_crashes, 3);
  EXPECT_EQ(process({.offset = 3}, book, {.cautious = true}).result, Result::duplicate);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(effects(), "k1=10");
}

// Of a route that decodes payloads. Its key may be in the payload.
TEST_F(LetterKey, IsKnownOfADecodedMessageThatKilledTheProcess) {
  const payload::Reading good{.json = "5"};
  const Given late{.cautious = true, .reading = &good, .reads_late = true};
  process({.offset = 1});
  announce_crashes(route.retry.max_crashes, 3);
  EXPECT_EQ(process({.offset = 3}, book, late).result, Result::duplicate);
  announce_crashes(route.retry.max_crashes, 4);
  EXPECT_EQ(process({.key = "k2", .offset = 4}, book, late).reason, "crashed");
  EXPECT_EQ(database.value("SELECT key, kafka_offset FROM hapax.dead_letters"), "k2|4");
  announce_crashes(route.retry.max_crashes + 1, 5);
  EXPECT_EQ(process({.key = "k3", .offset = 5}, book, late).reason, "crashed");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.idempotency_keys WHERE key = 'k3'"), "0")
      << "decoding kills the process";
}

// The schema registry is away: the letter waits for its key.
TEST_F(LetterKey, WaitsForTheSchemaOfAMessageThatKilledTheProcess) {
  const payload::Reading away{.state = payload::Reading::State::away, .reason = "registry"};
  announce_crashes(route.retry.max_crashes);
  const Outcome waits = process({}, book, {.cautious = true, .reading = &away, .reads_late = true});
  EXPECT_EQ(waits.reason, "registry");
  const payload::Reading good{.json = "5"};
  const Given later{
      .cautious = true, .crashes = waits.crashes, .reading = &good, .reads_late = true};
  EXPECT_EQ(process({}, book, later).reason, "crashed");
  EXPECT_EQ(key_row(), "failed@0");
}

// A message that hapax does not remember stays so: no key may hide that.
TEST_F(LetterKey, SkipsAnUnknownMessageBelowTheHighestCheckpointWithoutAKey) {
  const Outcome outcome = process({.offset = 4}, book, {.guard_below = 9, .skip = "ann: no"});
  EXPECT_EQ(outcome.reason, "skipped_by_operator");
  EXPECT_EQ(key_row(), "");
  EXPECT_EQ(database.value("SELECT coalesce(key, 'none') FROM hapax.dead_letters"), "none");
}

TEST_F(LetterKey, SkipsAMessageWhoseClaimPostgreSQLRefuses) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE 'no claims' USING ERRCODE = 'P0999'; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT ON hapax.idempotency_keys "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  EXPECT_EQ(process({}).result, Result::halt_partition);
  EXPECT_EQ(process({}, book, {.skip = "ann: no"}).reason, "skipped_by_operator");
  EXPECT_EQ(count("hapax.dead_letters"), 1);
}

TEST_F(LetterKey, KeepsItWithoutItsKeyIfThatKillsTheProcess) {
  announce_crashes(route.retry.max_crashes + 1);
  EXPECT_EQ(process({}, book, {.cautious = true}).reason, "crashed");
  EXPECT_EQ(key_row(), "");
}

// It was named, and the process lived. Only the letter could not be written then.
TEST_F(LetterKey, KeepsItThoughPostgreSQLWasAwayWhenItWasGivenUp) {
  announce_crashes(route.retry.max_crashes);
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE 'away' USING ERRCODE = '57P01'; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT ON hapax.dead_letters "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  const Outcome away = process({}, book, {.cautious = true});
  EXPECT_EQ(away.result, Result::outage);
  EXPECT_EQ(away.crashes, route.retry.max_crashes);
  database.run("DROP TRIGGER refuse ON hapax.dead_letters");
  EXPECT_EQ(process({}, book, {.crashes = away.crashes}).reason, "crashed") << "caution has ended";
  EXPECT_EQ(key_row(), "failed@0");
  EXPECT_EQ(runs, 0);
}

// The partition is another worker's: what that one announced stays.
TEST_F(LetterKey, AnnouncesNoRunInAPartitionThatItLost) {
  take(3);
  announce_crashes(1);
  take(3);
  EXPECT_EQ(process({}, book, {.cautious = true, .epoch = 1}).reason, "fenced");
  EXPECT_EQ(database.value("SELECT crashes FROM hapax.attempts"), "1");
  EXPECT_EQ(runs, 0);
}

// It woke up behind its partition's move: if the new owner dies now, that is one crash.
TEST_F(LetterKey, TakesBackItsOwnAnnouncementAndNotTheNewOwners) {
  take(3);
  Processor stale = make_processor();
  const Body loses_the_partition = [&](const Message& /*message*/, Context& /*context*/) {
    take(3);
    database.run("UPDATE hapax.attempts SET crashes = crashes + 1");
    throw std::runtime_error("no");
  };
  EXPECT_EQ(process_on(stale, {}, loses_the_partition, {.cautious = true, .epoch = 1}).reason,
            "fenced");
  std::string why;
  EXPECT_TRUE(stale.reachable(why)) << why;
  EXPECT_EQ(database.value("SELECT crashes FROM hapax.attempts"), "1");
}

// The partition moved to another worker, which announced the message and died of it, and back.
TEST_F(LetterKey, ForgivesNoCrashOfTheOwnerInBetween) {
  take(3);
  take(3);
  take(3);
  announce_crashes(2);  // what this worker survived under epoch 1, and the other's death
  std::string at_run;
  const Body looks = [&](const Message& /*message*/, Context& /*context*/) {
    at_run = database.value("SELECT crashes FROM hapax.attempts");
  };
  process({}, looks, {.cautious = true, .announced = 1, .epoch = 3});
  EXPECT_EQ(at_run, "2") << "the other's death, and this run";
}

// PostgreSQL's clock went back since the letter was written and discarded.
TEST_F(LetterKey, OpensAgainIfTheMessageFailsOnceMoreAtAnyTimeOfTheClock) {
  const Body fails = [](const Message& /*message*/, Context& /*context*/) { throw Reject("no"); };
  process({}, fails);
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded', ended_by = 'ann', "
      "ended_why = 'x', created_at = now() + interval '1 minute';"
      "UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(process({}, fails).result, Result::failed);
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.dead_letters WHERE ended_at IS NULL"), "1");
}

}  // namespace
}  // namespace hapax::flow
