// What comes beside a call: operators, duplicates, a lost lease, a replay, and PostgreSQL away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "outside/shop.hpp"
#include "sandbox/free_port.hpp"
#include "sandbox/temporary_folder.hpp"
#include "store/transaction.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;

Said as_owner(const Shop& shop, const WorkerProcess& worker, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--why", "a test", "--yes", "--url", shop.site.database().owner().url});
  return hapax(arguments, worker.config());
}

TEST(ChargesBeside, AForgottenKeyAreMadeAgainOnceItsMessageComesAgain) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kQueryable, false);
  const auto worker = shop.worker("w");
  for (int i = 0; i < 4; ++i) shop.send(i);
  shop.await_charges(4);
  shop.site.await_no_lag();
  EXPECT_EQ(as_owner(shop, *worker, {"keys", "forget", "p2"}).code, 0);
  const Said rewound =
      as_owner(shop, *worker, {"offsets", "rewind", shop.site.topic() + "/0", "--to", "0"});
  EXPECT_EQ(rewound.code, 0) << rewound.text;
  shop.await_charges(5);
  shop.site.await_no_lag();
  EXPECT_EQ(shop.gateway.charges(),
            (std::map<std::string, int>{{"p0", 1}, {"p1", 1}, {"p2", 2}, {"p3", 1}}));
}

// Its worker died in the call, and then an operator passed over the message. So no worker would
// carry a decision out, until the message comes again.
TEST(ChargesBeside, AnOperatorThatSkipsAreDecidedAboutOnceTheMessageComesAgain) {
  HAPAX_NEEDS_KAFKA();
  for (const nlohmann::json& rules : {kIdempotent, kNever}) {
    SCOPED_TRACE(rules.dump());
    Shop shop(rules, rules == kIdempotent);
    const auto worker = shop.worker("w");
    std::promise<void> killed;
    shop.gateway.set_watch([&](const std::string&, bool is_charged) {
      if (!is_charged) return;
      shop.gateway.set_watch({});
      worker->kill();
      killed.set_value();
    });
    shop.send(0);
    killed.get_future().get();
    const std::string place =
        shop.value("SELECT topic || '/' || partition FROM hapax.idempotency_keys");
    const Said skipped = as_owner(shop, *worker, {"offsets", "skip", place, "--to", "1"});
    EXPECT_EQ(skipped.code, 0) << skipped.text;
    shop.site.await("SELECT count(*) FROM hapax.holders WHERE until > clock_timestamp()", "0");
    const std::vector<std::string> happened = {"--happened", R"({"charge": "c-p0-1"})"};
    const Said refused = decide(shop, *worker, "p0", happened);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.text, testing::HasSubstr("offsets rewind " + place + " --to 0"));

    const Said rewound = as_owner(shop, *worker, {"offsets", "rewind", place, "--to", "0"});
    EXPECT_EQ(rewound.code, 0) << rewound.text;
    worker->start_again();
    if (rules == kNever) {
      worker->await("dead_letter", {{"reason", "outcome_unknown"}});
      EXPECT_EQ(decide(shop, *worker, "p0", happened).code, 0);
    }
    shop.await_charges(1);
    shop.expect_exact(1);
  }
}

// Nothing but the end of a call wakes its thread within this lease.
TEST(ChargesBeside, AFloodOfDuplicatesAreNotHeldUp) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  shop.outside["lease"] = "10m";
  const auto worker = shop.worker("w");
  shop.send(0);
  shop.await_charges(1);
  for (int n = 0; n < 400; ++n) {
    Outgoing again = shop.site.payment(0);
    again.key = "a" + std::to_string(n);  // of another order key
    shop.producer.produce(again);
  }
  shop.producer.flush();
  shop.send(1);
  shop.await_charges(2);
  shop.site.await_no_lag();
  shop.expect_exact(2);
}

TEST(ChargesBeside, MessagesThatAreNoJsonAreNotMade) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  Outgoing broken = shop.site.payment(0);
  broken.payload = "{";
  shop.producer.send(broken);
  worker->await("dead_letter", {{"reason", "rejected"}});
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys"), "failed")
      << "a replay may call";
  const sandbox::TemporaryFolder folder("hapax-charges");
  const std::string fixed = folder.path() / "fixed.json";
  std::ofstream(fixed) << *shop.site.payment(0).payload;
  const Said said = as_owner(shop, *worker, {"dead", "replay", "1", "--payload", fixed});
  EXPECT_EQ(said.code, 0) << said.text;
  shop.await_charges(1);
  EXPECT_EQ(shop.gateway.calls(), 1);
}

TEST(ChargesBeside, ALeaseThatIsLostAreKeptAllTheSame) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  shop.send(0, "hang");
  shop.gateway.await_hanging(1);
  shop.site.database().run("DELETE FROM hapax.holders");
  worker->await("lease_lost");
  shop.send(1);
  shop.site.await("SELECT count(*) FROM charges WHERE payment = 'p1'", "1");
  EXPECT_EQ(shop.gateway.calls("p0"), 1) << "its call still runs";
  shop.gateway.release();
  shop.await_charges(2);
  shop.site.await_no_lag();
  shop.expect_exact(2);
}

TEST(ChargesBeside, AReplayAreBookedThoughPostgresGoesAway) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const int port = sandbox::free_port();
  nlohmann::json patch = shop.patch();
  patch["route"]["options"]["gateway"] = "http://127.0.0.1:" + std::to_string(port);
  const auto worker = shop.site.worker("w", patch);
  shop.send(0, "hang");
  worker->await("dead_letter", {{"reason", "attempts_exhausted"}});
  Gateway late(false, port);
  auto replay = std::async(std::launch::async, [&] {
    return as_owner(shop, *worker, {"dead", "replay", "1"}).code;
  });
  late.await_hanging(1);
  test::postgres().stop();
  late.release();
  worker->await("postgres_down");
  test::postgres().start();
  shop.await_charges(1);
  EXPECT_EQ(late.calls(), 1);
  EXPECT_EQ(shop.value("SELECT status FROM hapax.idempotency_keys"), "completed");
  replay.wait();
}

TEST(ChargesBeside, AnOutageAtSigtermKeepTheirAnswer) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  shop.send(0, "hang");
  shop.gateway.await_hanging(1);
  test::postgres().stop();
  worker->await("postgres_down");
  worker->terminate();
  worker->await("stopping");
  shop.gateway.release();
  test::postgres().start();
  worker->ended();
  worker->start_again();
  shop.await_charges(1);
  shop.expect_exact(1);
  EXPECT_EQ(shop.gateway.calls(), 1);
}

// Its key is the old one, so a worker with another key would call once more.
TEST(ChargesBeside, AStopAreNotMadeAgainUnderAnotherKey) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kNever, false);
  const auto worker = shop.worker("w");
  shop.send(0, "hang");
  shop.gateway.await_hanging(1);
  worker->terminate();
  worker->await("stopping");
  shop.gateway.release();
  EXPECT_EQ(worker->ended().code, 0) << worker->output();
  nlohmann::json patch = shop.patch();
  patch["route"]["key"] = {{"header", nullptr}, {"json", "/account"}};  // a patch: null removes
  const auto changed = shop.site.worker("changed", patch);
  changed->await("halted", {{"reason", "key_spec_changed"}});
  EXPECT_EQ(shop.gateway.calls(), 1);
}

TEST(ChargesBeside, ATransactionThatHasAKeyHoldUpNoOther) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  const auto worker = shop.worker("w");
  shop.send(1);
  shop.await_charges(1);
  const std::string scope = shop.value("SELECT scope FROM hapax.idempotency_keys");
  store::Session session(shop.site.database().owner());
  store::Transaction other(session);
  other.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, "
      "fingerprint_rule, group_id, topic, generation, partition, kafka_offset, expires_at) "
      "VALUES ('p0', '" +
      scope + "', '', 'failed', '', '', '', '', 1, 0, 0, 'infinity')");
  shop.send(0);
  for (int i = 2; i < 8; ++i) shop.send(i);
  shop.await_charges(7);
  EXPECT_EQ(shop.gateway.calls("p0"), 0);
  other.rollback();
  shop.await_charges(8);
  shop.site.await_no_lag();
  shop.expect_exact(8);
  EXPECT_EQ(worker->count("postgres_down"), 0U) << "one key is not all of PostgreSQL";
}

// Its COMMIT was done after the worker had given it back on another connection.
TEST(ChargesBeside, ATakeThatCommittedTooLateAreMade) {
  HAPAX_NEEDS_KAFKA();
  Shop shop(kIdempotent);
  shop.outside["lease"] = "10m";
  const auto worker = shop.worker("w");
  shop.send(0);
  shop.await_charges(1);
  shop.site.await_no_lag();
  shop.site.database().run(
      "DELETE FROM charges; UPDATE hapax.idempotency_keys SET status = 'started', calls = 1, "
      "holder = (SELECT id FROM hapax.holders), called_at = now(), expires_at = 'infinity'");
  shop.send(0);
  shop.await_charges(1);
  shop.site.await_no_lag();
  shop.expect_exact(1);
}

}  // namespace
}  // namespace hapax::support
