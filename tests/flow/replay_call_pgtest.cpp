// Replays on a route that calls to the outside. The call is made once, its answer is not lost, and
// a worker goes on with each key.
#include <gmock/gmock.h>

#include <fstream>

#include "flow/replay_call_case.hpp"
#include "payload/reader.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::flow {
namespace {

TEST_F(CallOfAReplay, IsMadeOnceAndBooked) {
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(key("status"), "completed");
  EXPECT_TRUE(holder.keys.add(handed_on())) << "its key stays in hand for ever";
}

TEST_F(CallOfAReplay, KeepsItsAnswerThroughAnOutage) {
  const Replayed replayed = replay(book, [&](const auto&) { end_sessions(); });
  EXPECT_EQ(replayed.result, ReplayResult::completed) << replayed.detail;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(effects(), "k1=10");
}

// As if that took longer than statement_timeout, once.
TEST_F(CallOfAReplay, KeepsItsAnswerThoughPostgresRefusesItAtFirst) {
  database.run(
      "CREATE SEQUENCE tries; GRANT USAGE ON tries TO hapax_worker;"
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF nextval('tries') < 2 THEN RAISE 'canceling statement due to statement timeout' USING "
      "ERRCODE = '57014'; END IF; RETURN NEW; END $$;"
      "CREATE TRIGGER refuse BEFORE UPDATE ON hapax.idempotency_keys "
      "FOR EACH ROW WHEN (NEW.status = 'answered') EXECUTE FUNCTION refuse()");
  const Replayed replayed = replay();
  EXPECT_EQ(replayed.result, ReplayResult::completed) << replayed.detail;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(effects(), "k1=10");
}

// As if its lease had been over, and another worker had taken the key over.
TEST_F(CallOfAReplay, TellsThatItsAnswerCameTooLate) {
  testing::internal::CaptureStderr();
  const Replayed replayed = replay(book, [&](const auto&) {
    database.run("UPDATE hapax.idempotency_keys SET token = token + 1");
  });
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_EQ(replayed.result, ReplayResult::later);
  EXPECT_THAT(logged, testing::HasSubstr("call_superseded"));
}

TEST_F(CallOfAReplay, LeavesAnAnswerThatCannotBeBookedToAnOperator) {
  EXPECT_EQ(replay(reject_it).result, ReplayResult::failed);
  EXPECT_EQ(key("status || answer::text || coalesce(holder::text, '')"),
            R"(unknown{"charge":"c1"})");
  EXPECT_EQ(state_of(letter), "open");
}

TEST_F(CallOfAReplay, IsUnknownIfItFailsAndMayNotBeRepeated) {
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  EXPECT_EQ(key("status"), "unknown");
  EXPECT_EQ(replay_row(), "failed|outcome_unknown: cut");
}

// The operator types it between the end of the run and its note. No worker would carry it out.
TEST_F(CallOfAReplay, NoDecisionIsTakenWhileAReplayEnds) {
  using What = store::CallDecision::What;
  ended = {outside::Ended::How::failed, "cut"};
  std::string refused;
  before_its_end = [&] { refused = decide(What::did_not_happen); };
  EXPECT_EQ(replay().result, ReplayResult::failed);
  EXPECT_THAT(refused, testing::HasSubstr("a worker runs a replay"));
  want(letter);
  before_its_end = [&] { refused = decide(What::happened); };
  EXPECT_EQ(replay().result, ReplayResult::refused) << "its outcome is unknown";
  EXPECT_THAT(refused, testing::HasSubstr("a worker runs a replay"));
  before_its_end = {};
  want(letter, "99");  // of another operator, too early, with another payload
  EXPECT_EQ(decide(What::happened), "");
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(CallOfAReplay, BooksWhatHappenedThoughASchemaThatCameLaterRefusesItsMessage) {
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  const sandbox::TemporaryFolder folder("schema");
  config::Payload rules;
  rules.schema = folder.path() / "none.json";
  std::ofstream(rules.schema) << R"({"type": "null"})";
  route.payload = payload::make_reader(rules);
  want(letter);
  EXPECT_EQ(replay().result, ReplayResult::refused) << "nobody knows whether it happened";
  EXPECT_EQ(decide(store::CallDecision::What::happened), "");
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

// Its key is then another one, under which nothing was called.
TEST_F(CallOfAReplay, IsNotMadeForAnEditedPayloadWhileTheLettersOwnIsUnknown) {
  give_up_on_one_with_its_key_inside();
  ended = {outside::Ended::How::failed, "cut"};
  want(letter);
  EXPECT_EQ(replay().result, ReplayResult::failed);
  ASSERT_EQ(calls, 1);
  want(letter, R"({"id": "k2"})");
  const Replayed edited = replay();
  EXPECT_EQ(edited.result, ReplayResult::refused);
  EXPECT_THAT(edited.detail, testing::HasSubstr("outside decide"));
  EXPECT_EQ(calls, 1) << "called again although the outcome is unknown, and repeat is never";
}

TEST_F(CallOfAReplay, ADecisionRunsThePayloadThatCalled) {
  using What = store::CallDecision::What;
  database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
  want(letter, "99");
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  EXPECT_EQ(decide(What::did_not_happen), "");
  EXPECT_EQ(replay().result, ReplayResult::failed) << "calls again, and is unknown again";
  EXPECT_EQ(decide(What::happened), "");
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(effects(), "k1=99");
}

// A release that does not call is rolled back. The operator has decided meanwhile, and does not
// again.
TEST_F(CallOfAReplay, ThatIsDecidedAboutWaitsForAWorkerWhoseRouteCalls) {
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  EXPECT_EQ(decide(store::CallDecision::What::happened), "");
  const auto outside = std::exchange(route.outside, std::nullopt);
  const Replayed waits = run_next();
  EXPECT_EQ(waits.result, ReplayResult::later) << waits.detail;
  EXPECT_EQ(runs, 0);
  EXPECT_THAT(database.value("SELECT last_error FROM hapax.replays ORDER BY id DESC LIMIT 1"),
              testing::HasSubstr("waits for a worker whose handler calls"));
  EXPECT_EQ(run_next().result, ReplayResult::nothing) << "not at once";
  route.outside = outside;
  database.run("UPDATE hapax.replays SET next_try = now()");
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(CallOfAReplay, ThatDidNotHappenIsLeftToAHandlerThatDoesNotCall) {
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  EXPECT_EQ(decide(store::CallDecision::What::did_not_happen), "");
  route.outside.reset();
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(CallOfAReplay, DoesNotGoOnBehindStepsOfAnotherPayload) {
  expect_no_edited_call_behind_steps_by("payload");
}

TEST_F(CallOfAReplay, DoesNotGoOnBehindStepsOfAPayloadByAnotherRule) {
  expect_no_edited_call_behind_steps_by("json");
}

// Booked, by its own message. To forget the key would call and book again.
TEST_F(CallOfAReplay, IsRefusedInTheWordsOfWhatHappened) {
  EXPECT_EQ(replay().result, ReplayResult::completed);
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = NULL, ended_as = NULL, ended_by = NULL, "
      "ended_why = NULL");
  want(letter);
  const Replayed again = replay();
  EXPECT_EQ(again.result, ReplayResult::refused);
  EXPECT_THAT(again.detail, testing::HasSubstr("the operation took effect"));
}

// The edited payload has another key. Only its own replay may go on with what was called under it.
TEST_F(CallOfAReplay, ADecisionGoesOnUnderTheKeyThatWasCalled) {
  using What = store::CallDecision::What;
  give_up_on_one_with_its_key_inside();
  want(letter, R"({"id": "k2"})");
  EXPECT_EQ(replay(reject_it).result, ReplayResult::failed) << "answered, and not booked";
  want(letter);
  const Replayed plain = replay();
  EXPECT_EQ(plain.result, ReplayResult::refused);
  EXPECT_THAT(plain.detail, testing::HasSubstr("called under the key \"k2\""));
  for (const bool booked : {false, true}) {
    EXPECT_EQ(decide(What::happened, "k2"), "");
    EXPECT_EQ(replay(booked ? book : reject_it).result,
              booked ? ReplayResult::completed : ReplayResult::failed);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(effects(), R"(k1={"id": "k2"})") << "its header still names k1";
}

TEST_F(CallOfAReplay, IsNotDecidedAboutIfAnEarlierReleaseMayHaveCalledWithAnEditedPayload) {
  using What = store::CallDecision::What;
  database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
  want(letter, "99");
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  database.run("UPDATE hapax.replays SET key = NULL, tenant = NULL, token = NULL");
  EXPECT_THAT(decide(What::happened), testing::HasSubstr("noted nowhere which payload called"));
  EXPECT_EQ(decide(What::give_up), "");
}

TEST_F(CallOfAReplay, WithAnEditedPayloadNeedsTheSchemaThatNotesIt) {
  database.run("ALTER TABLE hapax.replays DROP COLUMN key, DROP COLUMN tenant, DROP COLUMN token");
  database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
  want(letter, "99");
  const Replayed edited = replay();
  EXPECT_EQ(edited.result, ReplayResult::refused);
  EXPECT_THAT(edited.detail, testing::HasSubstr("hapax migrate up"));
  EXPECT_EQ(calls, 0);
  want(letter);
  EXPECT_EQ(replay().result, ReplayResult::completed);
}

TEST_F(CallOfAReplay, IsUnknownIfItsProcessesDied) {
  const auto crash_again = [&](const std::string& status) {
    database.run("UPDATE hapax.idempotency_keys SET status = '" + status +
                 "', holder = 0, calls = 3; UPDATE hapax.replays SET ended_at = NULL, runs = 9, "
                 "claimed_until = now() - interval '1 s', next_try = now()");
    return replay().result;
  };
  EXPECT_EQ(crash_again("failed"), ReplayResult::failed);
  EXPECT_EQ(key("status"), "failed") << "it was never called";
  EXPECT_EQ(crash_again("started"), ReplayResult::failed);
  EXPECT_EQ(key("status"), "unknown");
  EXPECT_EQ(calls, 0);
}

TEST_F(CallOfAReplay, WaitsWhileAMessageHasItsKeyInHand) {
  ASSERT_TRUE(holder.keys.add(handed_on()));
  EXPECT_EQ(replay().result, ReplayResult::later);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(key("status"), "failed");
}

TEST_F(CallOfAReplay, WaitsWithoutALease) {
  holder.lease.lost();
  EXPECT_EQ(replay().result, ReplayResult::later);
  EXPECT_EQ(calls, 0);
}

// The thread that calls compares.
TEST_F(CallOfAReplay, IsToBeMadeUnderTheLeaseThatItsKeyWasTakenWith) {
  const store::HolderId taken_with = holder.id;
  replay(book, [&](const auto&) { holder.id = taken_with + 1; });
  EXPECT_EQ(under, taken_with);
}

TEST_F(CallOfAReplay, GivesBackAKeyThatItCouldNotGoOnWith) {
  replay(book, [](const auto&) { throw std::runtime_error("no thread"); });
  EXPECT_EQ(key("status || calls"), "started1");
  EXPECT_FALSE(holder.keys.add(handed_on())) << "PostgreSQL still has it under this lease";
  holder.keys.give_back(looker);
  EXPECT_EQ(key("status || calls || coalesce(holder::text, ' free')"), "started0 free");
  EXPECT_TRUE(holder.keys.add(handed_on()));
}

// Its COMMIT was done after the key had been given back on another connection.
TEST_F(CallOfAReplay, GivesBackAKeyWhoseTakeCommittedTooLate) {
  route.outside->repeat = config::Repeat::idempotent;
  route.outside->remembers = 1h;
  database.run(
      "UPDATE hapax.idempotency_keys SET status = 'started', calls = 1, crashes = 0, token = 1, "
      "alone = false, called_at = now(), expires_at = 'infinity', holder = " +
      std::to_string(holder.id));
  EXPECT_EQ(replay().result, ReplayResult::later);
  EXPECT_FALSE(holder.keys.add(handed_on()));
  holder.keys.give_back(looker);
  EXPECT_EQ(key("calls || coalesce(holder::text, 'free')"), "1free");
  database.run("UPDATE hapax.replays SET next_try = now()");
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(calls, 1);
}

TEST_F(CallOfAReplay, KeepsItsClaimWhileItIsUnderWay) {
  constexpr const char* kClaim = "SELECT claimed_until > now() + interval '1 s' FROM hapax.replays";
  EXPECT_EQ(replay(book,
                   [&](const auto& meanwhile) {
                     database.run("UPDATE hapax.replays SET claimed_until = now()");
                     EXPECT_EQ(database.value(kClaim), "f");
                     meanwhile();
                     EXPECT_EQ(database.value(kClaim), "t") << "another worker would claim it";
                   })
                .result,
            ReplayResult::completed);
}

}  // namespace
}  // namespace hapax::flow
