// Workers whose calls have two steps: a step that is kept is not repeated. The gateway keeps no
// keys, so it would charge a repeated step twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outside/shop.hpp"

namespace hapax::support {
namespace {

using Counts = std::map<std::string, int>;
using testing::HasSubstr;

const Counts kOnceEach = {{"p0/charge", 1}, {"p0/fee", 1}};

struct SteppedShop : Shop {
  explicit SteppedShop(const nlohmann::json& rules) : Shop(rules, false, Site::on_mock_cluster) {}
  std::unique_ptr<WorkerProcess> stepped(
      const std::string& name, const std::string& crash_at = {},
      const nlohmann::json& options = nlohmann::json::object()) const {
    nlohmann::json changed = patch();
    changed["route"]["handler"] = "stepped";
    changed["route"]["plugin"] = HAPAX_BINARY_DIR "/lib/libstepped.so";
    changed["route"]["retry"] = {{"max_attempts", 2}, {"first", "10ms"}};
    changed["route"]["options"].update(options);
    changed["worker"].update({{"revoke_timeout", "1s"}, {"shutdown_timeout", "3s"}});
    return site.worker(name, changed, crash_at);
  }
  // The first payment, by a worker whose fees arrive.
  void replay() {
    const auto worker = stepped("w2");
    const Said said = hapax({"dead", "replay", "1", "--why", "it is back", "--yes", "--url",
                             site.database().owner().url},
                            worker->config());
    EXPECT_EQ(said.code, 0) << said.text;
    site.await("SELECT count(*) FROM charges", "1");
    EXPECT_EQ(gateway.charges(), kOnceEach);
  }
  void refuse_updates(const std::string& when) {
    site.database().run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;"
        "CREATE TRIGGER refuse BEFORE UPDATE ON hapax.idempotency_keys FOR EACH ROW WHEN (" +
        when + ") EXECUTE FUNCTION refuse()");
  }
};

TEST(Steps, ThatAreKeptAreNotRepeatedAfterADeathOfTheirWorker) {
  SteppedShop shop(kIdempotent);
  shop.send(0);
  const auto worker = shop.stepped("w", "step_kept:1");
  worker->ended();
  worker->start_again();
  shop.await_charges(1);
  EXPECT_EQ(shop.gateway.charges(), kOnceEach);
  EXPECT_EQ(shop.value("SELECT status, calls, steps IS NULL FROM hapax.idempotency_keys"),
            "completed|2|t");
}

TEST(Steps, InDoubtUnderNeverAreDecidedAboutAlone) {
  SteppedShop shop(kNever);
  shop.send(0);
  const auto worker = shop.stepped("w", "step_kept:1");
  worker->ended();
  worker->start_again();
  shop.site.await("SELECT count(*) FROM hapax.dead_letters WHERE reason = 'outcome_unknown'", "1");
  EXPECT_THAT(hapax({"outside", "list"}, worker->config()).text, HasSubstr("steps done: charge"));
  const Said decided = decide(shop, *worker, "p0", {"--did-not-happen"});
  EXPECT_EQ(decided.code, 0) << decided.text;
  shop.await_charges(1);
  EXPECT_EQ(shop.gateway.charges(), kOnceEach);
}

// Nothing is in doubt, so no operator decides. Kafka sends the message again, too.
TEST(Steps, BehindWhichNothingCouldBeSentGoOnByAReplay) {
  SteppedShop shop(kNever);
  shop.send(0);
  {
    const auto worker = shop.stepped("w", "call_given_up:1", {{"fee_is_away", true}});
    worker->ended();
    EXPECT_THAT(
        shop.value("SELECT reason || attempts || error FROM hapax.dead_letters"),
        testing::AllOf(HasSubstr("attempts_exhausted2"), HasSubstr("steps that are done: charge")));
    worker->start_again();
    shop.site.await("SELECT max(next_offset) FROM hapax.checkpoints", "1");
  }
  EXPECT_EQ(shop.value("SELECT status || calls FROM hapax.idempotency_keys"), "started0");
  shop.replay();
}

// The other side can tell that what was in doubt has not happened.
TEST(Steps, WhoseDoubtIsOverGoOnByAReplay) {
  SteppedShop shop(kQueryable);
  shop.send(0);
  {
    const auto worker = shop.stepped("w", {}, {{"fee_is_cut", true}, {"fee_is_away", true}});
    shop.site.await("SELECT count(*) FROM hapax.dead_letters", "1");
  }
  EXPECT_EQ(shop.value("SELECT reason FROM hapax.dead_letters"), "attempts_exhausted");
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys"), "started");
  shop.replay();
}

// As if it took longer than statement_timeout to keep that answer.
TEST(Steps, WhoseAnswersPostgresRefusesHoldUpNoOtherCall) {
  for (const char* const answer : {"NEW.steps IS NOT NULL", "NEW.answer IS NOT NULL"}) {
    SteppedShop shop(kIdempotent);
    shop.refuse_updates("NEW.key = 'p0' AND " + std::string(answer));
    shop.send(0);
    shop.send(1);
    const auto worker = shop.stepped("w");
    shop.site.await("SELECT string_agg(payment, ' ') FROM charges", "p1");
    EXPECT_THAT(worker->await("calls_delayed").at("sentence").get<std::string>(),
                testing::AllOf(HasSubstr("longer than statement_timeout"),
                               testing::Not(HasSubstr("rights"))));
    shop.site.database().run("DROP TRIGGER refuse ON hapax.idempotency_keys");
    shop.await_charges(2);
    EXPECT_EQ(shop.gateway.charges(),
              (Counts{{"p0/charge", 1}, {"p0/fee", 1}, {"p1/charge", 1}, {"p1/fee", 1}}));
  }
}

TEST(Steps, WhoseAnswerIsLostWithTheProcessAreNamed) {
  SteppedShop shop(kIdempotent);
  shop.refuse_updates("NEW.steps IS NOT NULL");
  shop.send(0);
  const auto worker = shop.stepped("w");
  worker->await("calls_delayed");
  worker->terminate();
  worker->ended();
  EXPECT_EQ(worker->count("still_calls"), 1U);
  EXPECT_EQ(worker->count("step_not_kept", {{"step", "charge"}, {"offset", 0}}), 1U)
      << worker->output();
}

// A relay that dies sends records again. The one before it was given up.
TEST(Steps, AreNotBegunForACopyOfARecordThatWasGivenUp) {
  SteppedShop shop(kNever);
  Outgoing record = shop.site.payment(0);
  record.headers.emplace_back("hapax-origin", "of an outbox");
  shop.producer.send(record);
  {
    const auto worker = shop.stepped("w", {}, {{"is_away", true}});
    shop.site.await("SELECT status FROM hapax.idempotency_keys", "failed");
  }
  shop.producer.send(record);
  const auto worker = shop.stepped("w2");
  shop.site.await("SELECT max(next_offset) FROM hapax.checkpoints", "2");
  EXPECT_EQ(shop.gateway.charges(), Counts());
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys"), "failed");
  // An operator decides otherwise.
  shop.site.database().run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  shop.producer.send(record);
  shop.await_charges(1);
  EXPECT_EQ(shop.gateway.charges(), kOnceEach);
}

}  // namespace
}  // namespace hapax::support
