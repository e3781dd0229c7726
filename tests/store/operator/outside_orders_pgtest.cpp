// What operators decide about open calls, as the operator's role: only about what they have seen,
// and only what a worker carries out.
#include "store/operator/outside_orders.hpp"

#include <gmock/gmock.h>

#include "store/message/replays.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using What = CallDecision::What;

class CallOrders : public testing::Test {
 protected:
  CallOrders() {
    session.emplace(database.make_operator());
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes) "
        "VALUES ('k', 's', 'unknown', 'g', 't', 1, 0, 7, 'infinity', 100, 1, now(), false, 0); "
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
        "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
        "handler_version, scope, key, first_at) VALUES ('g', 't', 1, 0, 7, 'none', '{}', '{}', "
        "'outcome_unknown', 'no', 1, 'h', '1', 's', 'k', now())");
  }

  // Why it is refused; empty: it is decided.
  std::string decide(What what, std::optional<std::int64_t> token = {},
                     const std::string& group = "g") {
    CallDecision decision{.what = what,
                          .answer = {},
                          .group = group,
                          .token = token,
                          .who = "ann",
                          .why = "seen",
                          .retention = std::chrono::hours(1)};
    if (what == What::happened) decision.answer = "{}";
    try {
      decide_call(*session, {"k", "s", ""}, decision);
      return {};
    } catch (const Refused& refused) {
      return refused.what();
    }
  }
  std::string state() {
    return database.value(
        "SELECT (SELECT status FROM hapax.idempotency_keys), (SELECT ended_as FROM "
        "hapax.dead_letters), (SELECT string_agg(coalesce(outcome, 'open'), ' ') FROM "
        "hapax.replays)");
  }
  void replay() {
    database.run(
        "INSERT INTO hapax.replays (dead_letter, who, why, edited) VALUES (1, 'b', '', false)");
  }

  test::Database database;
  std::optional<Session> session;
};

// Another operator let it be called again meanwhile, and that call is unknown, too.
TEST_F(CallOrders, AreRefusedIfTheCallIsAnotherOne) {
  database.run("UPDATE hapax.idempotency_keys SET token = 101");
  EXPECT_THAT(decide(What::did_not_happen, 100), testing::HasSubstr("its token is 101, not 100"));
  EXPECT_EQ(state(), "unknown|null|null");
  EXPECT_EQ(decide(What::did_not_happen, 101), "");
  EXPECT_EQ(state(), "forgotten|null|open");
}

TEST_F(CallOrders, AreRefusedIfAnotherGroupsWorkersWouldCarryThemOut) {
  for (const What what : {What::happened, What::did_not_happen, What::give_up})
    EXPECT_THAT(decide(what, {}, "renamed"), testing::HasSubstr("of group \"g\""));
  EXPECT_EQ(state(), "unknown|null|null");
  EXPECT_EQ(decide(What::happened), "");
  EXPECT_EQ(state(), "answered|null|open");
}

TEST_F(CallOrders, ThatGiveUpCancelAReplayThatNobodyRuns) {
  replay();
  EXPECT_EQ(decide(What::give_up), "");
  EXPECT_EQ(state(), "completed|discarded|cancelled");
}

TEST_F(CallOrders, ThatGiveUpAreRefusedWhileAReplayRuns) {
  replay();
  Session worker(database.worker());
  ASSERT_TRUE(claim_replay(worker, "g", {"t"}, "w", std::chrono::hours(1)));
  EXPECT_THAT(decide(What::give_up), testing::HasSubstr("a worker runs a replay"));
  EXPECT_EQ(state(), "unknown|null|open");
}

}  // namespace
}  // namespace hapax::store
