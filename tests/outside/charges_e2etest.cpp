// Workers that charge a gateway, killed and cut off at every place, with each of the three
// declarations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "outside/shop.hpp"
#include "sandbox/free_port.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Charges, AreMadeAndBookedOnce) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 50; ++i) shop.send(i);
  shop.await_charges(50);
  shop.site.await_no_lag();
  shop.expect_exact(50);
  EXPECT_EQ(shop.gateway.calls(), 50);
  EXPECT_EQ(shop.value("SELECT result->>'charge' FROM hapax.idempotency_keys WHERE key = 'p7'"),
            "c-p7-1");
  expect_leaves(*worker);
  EXPECT_EQ(shop.value("SELECT count(*) FROM hapax.holders"), "0") << "it gave its lease back";
}

// The first call of each ends so that its outcome is unknown.
constexpr const char* kDoubtful[] = {"cut_before", "cut_after", "error_after"};

TEST(Charges, AreCalledAgainWithTheirKeyIfTheGatewayKeepsIt) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 12; ++i) shop.send(i, i < 3 ? kDoubtful[i] : "");
  shop.await_charges(12);
  shop.site.await_no_lag();
  shop.expect_exact(12);
  EXPECT_EQ(shop.gateway.calls(), 15) << "three of them twice";
  EXPECT_EQ(worker->count("attempt_failed"), 3U) << worker->output();
}

TEST(Charges, AreAskedAboutFirstIfTheGatewayCanTell) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kQueryable, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 12; ++i) shop.send(i, i < 3 ? kDoubtful[i] : "");
  shop.await_charges(12);
  shop.site.await_no_lag();
  shop.expect_exact(12);
  EXPECT_EQ(shop.gateway.questions(), 3);
  EXPECT_EQ(shop.gateway.calls(), 13) << "only what was not done is called again";
}

TEST(Charges, AreNeverRepeatedIfTheGatewayCanDoNeither) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 12; ++i) shop.send(i, i < 3 ? kDoubtful[i] : "");
  shop.send(10);  // of the order key of the first
  shop.await_charges(9);
  shop.site.await_no_lag();
  EXPECT_EQ(shop.gateway.calls(), 12) << "a doubtful call was repeated, or one is missing";
  EXPECT_EQ(shop.value("SELECT string_agg(key, ' ' ORDER BY key) FROM hapax.idempotency_keys "
                       "WHERE status = 'unknown' AND expires_at = 'infinity'"),
            "p0 p1 p2");
  EXPECT_EQ(shop.value("SELECT string_agg(key || ' ' || reason, ', ' ORDER BY key) "
                       "FROM hapax.dead_letters WHERE ended_at IS NULL"),
            "p0 outcome_unknown, p1 outcome_unknown, p2 outcome_unknown");
}

TEST(Charges, ThatAreDeclinedAreDoneAndALetter) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  const auto worker = shop.worker("w");
  shop.send(0, "decline");
  worker->await("dead_letter", {{"reason", "rejected"}});
  shop.send(0);
  shop.send(1);
  shop.await_charges(1);
  shop.site.await_no_lag();
  EXPECT_EQ(shop.gateway.calls("p0"), 1) << "a declined charge must not be tried again";
  EXPECT_EQ(shop.value("SELECT status || ' ' || error FROM hapax.idempotency_keys "
                       "WHERE key = 'p0'"),
            "completed declined: no funds");
}

// The place at which the process ends, and whether its charge is doubtful then.
struct Death {
  const char* at;
  bool is_doubtful;
};
constexpr Death kDeaths[] = {{"call_taken:1", true},
                             {"call_answered:1", false},
                             {"booking:1", false},
                             {"handled:1", false},
                             {"committed:1", false}};

class DeathOfACaller : public testing::TestWithParam<Death> {};
INSTANTIATE_TEST_SUITE_P(At, DeathOfACaller, testing::ValuesIn(kDeaths), [](const auto& about) {
  const std::string at = about.param.at;
  return at.substr(0, at.find(':'));
});

TEST_P(DeathOfACaller, RepeatsNothingThatTheGatewayDoesNotTolerate) {
  HAPAX_NEEDS_KAFKA();
  const bool doubtful = GetParam().is_doubtful;
  Shop shop(kNever, false);
  shop.send(0);
  const auto worker = shop.worker("w", GetParam().at);
  worker->ended();
  worker->start_again();
  shop.send(1);
  shop.await_charges(doubtful ? 1 : 2);
  shop.site.await_no_lag();
  EXPECT_EQ(shop.value("SELECT count(*) FROM hapax.dead_letters WHERE reason = 'outcome_unknown'"),
            doubtful ? "1" : "0");
  if (!doubtful) shop.expect_exact(2);
}

class DeathInABatchOfAnswers : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(At, DeathInABatchOfAnswers,
                         testing::Values("batch_claimed", "batch_handled", "batch_committed"),
                         [](const auto& about) { return std::string(about.param); });

TEST_P(DeathInABatchOfAnswers, LosesAndRepeatsNothing) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kMany = 60;
  Shop shop(kNever, false);
  shop.batch = 20;
  for (int i = 0; i < kMany; ++i) shop.send(i, i < 10 ? "hang" : "");
  const auto worker = shop.worker("w", GetParam() + std::string(":1"));
  shop.gateway.await_hanging(8);
  shop.gateway.release();  // so many answers come at once
  worker->ended();
  worker->start_again();
  shop.site.await_no_lag();
  // A call that was running when the process died is doubtful; those that were answered are not.
  EXPECT_EQ(shop.value("SELECT count(*) FROM hapax.idempotency_keys WHERE status NOT IN "
                       "('completed', 'unknown')"),
            "0");
  EXPECT_EQ(shop.value("SELECT count(*) = count(DISTINCT payment) AND count(*) = (SELECT count(*) "
                       "FROM hapax.idempotency_keys WHERE status = 'completed') FROM charges"),
            "t");
  EXPECT_EQ(shop.value("SELECT count(*) <= 9 FROM hapax.idempotency_keys WHERE status = 'unknown'"),
            "t")
      << "more than the eight calls that ran, and one that was taken ahead";
  for (const auto& [payment, times] : shop.gateway.charges()) EXPECT_EQ(times, 1) << payment;
}

TEST(Charges, OfAWorkerThatIsKilledInTheCallAreTakenOver) {
  HAPAX_NEEDS_KAFKA();
  for (const nlohmann::json& rules : {kIdempotent, kQueryable, kNever}) {
    SCOPED_TRACE(rules.dump());
    Shop shop(rules, rules == kIdempotent);
    const auto worker = shop.worker("w");
    std::promise<void> killed;
    shop.gateway.set_watch([&](const std::string& payment, bool is_charged) {
      if (payment != "p0" || !is_charged) return;
      shop.gateway.set_watch({});
      worker->kill();
      killed.set_value();
    });
    shop.send(0);
    killed.get_future().get();
    worker->start_again();
    shop.send(1);
    shop.await_charges(rules == kNever ? 1 : 2);
    shop.site.await_no_lag();
    EXPECT_EQ(shop.value("SELECT count(*) FROM hapax.idempotency_keys WHERE status = 'unknown'"),
              rules == kNever ? "1" : "0");
    if (rules != kNever) shop.expect_exact(2);
  }
}

TEST(Charges, ThatHaveBegunGoOnThoughASchemaThatCameLaterRefusesTheirMessage) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  const auto before = shop.worker("w");
  std::promise<void> killed;
  shop.gateway.set_watch([&](const std::string&, bool is_charged) {
    if (!is_charged) return;
    shop.gateway.set_watch({});
    before->kill();
    killed.set_value();
  });
  shop.send(0);
  killed.get_future().get();
  nlohmann::json patch = shop.patch();
  const sandbox::TemporaryFolder folder("schema");
  std::ofstream(folder.path() / "none.json") << R"({"maxProperties": 0})";
  patch["route"]["payload"] = {{"schema", (folder.path() / "none.json").string()}};
  const auto after = shop.site.worker("after", patch);
  shop.await_charges(1);
  shop.send(1);
  shop.site.await("SELECT string_agg(reason, ' ') FROM hapax.dead_letters", "schema_violation");
  shop.site.await_no_lag();
  EXPECT_EQ(shop.gateway.charges().size(), 1U);
}

TEST(Charges, OfAFrozenWorkerAreTakenOverOnceItsLeaseIsOver) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  shop.outside["max_duration"] = "2m";  // its client still waits when it thaws
  const auto frozen = shop.worker("frozen");
  shop.send(0, "hang");
  shop.gateway.await_hanging(1);
  frozen->freeze();
  const auto other = shop.worker("other");
  shop.await_charges(1);
  shop.gateway.release();
  frozen->thaw();
  frozen->await("call_superseded");
  shop.send(1);
  shop.await_charges(2);
  shop.site.await_no_lag();
  shop.expect_exact(2);
}

TEST(Charges, OfAFrozenWorkerAreLeftAloneWhileItsLeaseLasts) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  shop.outside.update({{"lease", "2m"}, {"max_duration", "2m"}});
  const auto frozen = shop.worker("frozen");
  shop.send(0, "hang");
  shop.gateway.await_hanging(1);
  frozen->freeze();
  const auto other = shop.worker("other");
  shop.send(10);  // of the same order key
  shop.send(1);
  shop.site.await("SELECT count(*) FROM charges WHERE payment = 'p1'", "1");
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys WHERE key = 'p0'"), "started");
  EXPECT_EQ(shop.gateway.calls("p0"), 1);
  shop.gateway.release();
  frozen->thaw();
  shop.await_charges(3);
  shop.site.await_no_lag();
  shop.expect_exact(3);
}

TEST(Charges, OfOneOrderKeyAreMadeOneAfterTheOther) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  const auto worker = shop.worker("w");
  shop.send(0, "hang");
  shop.send(10);  // of the same account
  for (int i = 1; i < 10; ++i) shop.send(i);
  shop.await_charges(9);
  EXPECT_EQ(shop.gateway.calls("p10"), 0);
  shop.gateway.release();
  shop.await_charges(11);
  EXPECT_EQ(shop.value("SELECT string_agg(payment, ' ' ORDER BY ctid) FROM charges "
                       "WHERE payment IN ('p0', 'p10')"),
            "p0 p10");
}

TEST(Charges, ThatRunAtSigtermAreWaitedFor) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  shop.send(0, "hang");
  shop.gateway.await_hanging(1);
  shop.send(1);
  shop.await_charges(1);
  worker->terminate();
  worker->await("stopping");
  shop.gateway.release();
  EXPECT_EQ(worker->ended().code, 0) << worker->output();
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys WHERE key = 'p0'"), "answered");
  worker->start_again();
  shop.await_charges(2);
  shop.expect_exact(2);
}

TEST(Charges, WithAnUnknownOutcomeAreDecidedByAnOperator) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 3; ++i) shop.send(i, kDoubtful[i]);
  shop.site.await("SELECT count(*) FROM hapax.idempotency_keys WHERE status = 'unknown'", "3");
  const Said status = hapax({"status"}, worker->config());
  EXPECT_THAT(status.text, HasSubstr("0 started, 0 answered, 3 unknown"));
  const Said list = hapax({"outside", "list"}, worker->config());
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.text, AllOf(HasSubstr("p0"), HasSubstr("p1"), HasSubstr("p2")));
  EXPECT_EQ(decide(shop, *worker, "p1", {"--happened"}).code, 1) << "no answer is kept";
  EXPECT_EQ(decide(shop, *worker, "p1", {"--happened", "{"}).code, 2) << "that is no JSON";
  EXPECT_EQ(decide(shop, *worker, "p1", {"--happened", ""}).code, 2) << "a variable that is empty";
  EXPECT_EQ(decide(shop, *worker, "p1", {"--happened", R"({"charge": "c-p1-1"})"}).code, 0);
  EXPECT_EQ(decide(shop, *worker, "p0", {"--did-not-happen"}).code, 0);
  EXPECT_EQ(decide(shop, *worker, "p2", {"--give-up"}).code, 0);
  shop.await_charges(2);
  EXPECT_EQ(decide(shop, *worker, "p2", {"--give-up"}).code, 1) << "it is decided";
  EXPECT_EQ(shop.gateway.calls("p0"), 2);
  EXPECT_EQ(shop.gateway.calls("p1"), 1);
  EXPECT_EQ(shop.gateway.calls("p2"), 1);
  shop.site.await(
      "SELECT string_agg(key || ' ' || ended_as, ', ' ORDER BY key) "
      "FROM hapax.dead_letters",
      "p0 replayed, p1 replayed, p2 discarded");
  EXPECT_EQ(shop.value("SELECT string_agg(key || ' ' || status, ', ' ORDER BY key) "
                       "FROM hapax.idempotency_keys"),
            "p0 completed, p1 completed, p2 completed");
  EXPECT_EQ(shop.value("SELECT count(*) FROM hapax.operator_log WHERE action LIKE 'outside%'"),
            "3");
}

TEST(Charges, AreNotCalledWhileTheGatewayIsAwayAndReplayedAfterIt) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const int port = sandbox::free_port();
  nlohmann::json patch = shop.patch();
  patch["route"]["options"]["gateway"] = "http://127.0.0.1:" + std::to_string(port);
  const auto worker = shop.site.worker("w", patch);
  shop.send(0);
  worker->await("dead_letter", {{"reason", "attempts_exhausted"}});
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys"), "failed")
      << "surely not called";
  const Gateway late(false, port);
  const Said said = hapax({"dead", "replay", "1", "--why", "it is back", "--yes", "--url",
                           shop.site.database().owner().url},
                          worker->config());
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_EQ(shop.value("SELECT count(*) FROM charges"), "1");
  EXPECT_EQ(late.calls(), 1);
}

nlohmann::json calling(const nlohmann::json& rules) {
  nlohmann::json outside = rules;
  outside.update({{"lease", "2s"}, {"max_duration", "100ms"}, {"concurrency", 4}});
  return {{"route", {{"handler", "calling"}, {"outside", outside}}}};
}

TEST(Charges, ThatHangEndTheProcessAndAreTakenOver) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto worker = site.worker("w", calling(kNever));
  producer.send(site.payment(0, {{"call", "hang"}}));
  worker->await("call_hangs");
  EXPECT_NE(worker->ended().code, 0);
  worker->start_again();
  producer.send(site.payment(1));
  site.await_booked(1);
  site.await("SELECT count(*) FROM hapax.idempotency_keys WHERE status = 'unknown'", "1");
}

TEST(Charges, ThatCannotBeBookedKeepTheirAnswer) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  const auto worker = site.worker("w", calling(kIdempotent));
  producer.send(site.payment(0, {{"book", "fail"}}));
  producer.send(site.payment(1, {{"book", "reject"}}));
  producer.send(site.payment(2));
  site.await_booked(1);
  site.await("SELECT string_agg(key || ' ' || reason, ', ' ORDER BY key) FROM hapax.dead_letters",
             "p0 attempts_exhausted, p1 rejected");
  EXPECT_EQ(site.database().value("SELECT string_agg(key || ' ' || status || ' ' || answer::text, "
                                  "', ' ORDER BY key) FROM hapax.idempotency_keys "
                                  "WHERE status <> 'completed'"),
            R"(p0 unknown {"answer":"p0"}, p1 unknown {"answer":"p1"})");
}

TEST(Charges, ThatRunWhilePostgresIsAwayAreBookedAfterIt) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 4; ++i) shop.send(i, "hang");
  shop.gateway.await_hanging(4);
  test::postgres().stop();
  shop.gateway.release();
  worker->await("postgres_down");
  test::postgres().start();
  shop.await_charges(4);
  shop.site.await_no_lag();
  shop.expect_exact(4);
}

}  // namespace
}  // namespace hapax::support
