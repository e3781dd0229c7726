// The chain of payments, receipts and a second ledger, while its parts are killed, frozen and cut
// off. Both ledgers are exact, the order per account stands in both, and the topic between them
// holds nothing but the receipts and equal repeats.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "support/chain.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;

// Does it at end(), or at the end of the test.
class Later {
 public:
  explicit Later(std::function<void()> action) : action_(std::move(action)) {}
  ~Later() { end(); }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  void end() {
    if (const auto action = std::exchange(action_, nullptr)) action();
  }

 private:
  std::function<void()> action_;
};

struct OutboxCrash {
  const char* at;               // name:how often it is reached, in a first life
  std::optional<bool> repeats;  // whether there must be repeats, or none
};

void PrintTo(const OutboxCrash& crash, std::ostream* out) { *out << crash.at; }

class OutboxCrashAt : public testing::TestWithParam<OutboxCrash> {};

TEST_P(OutboxCrashAt, EachReceiptIsBookedOnceAndInOrder) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 60;
  const auto [at, repeats] = GetParam();
  Chain chain;
  chain.pay(0, kPayments);
  nlohmann::json patch;
  if (std::string_view(at).starts_with("batch_")) patch = {{"route", {{"batch", 20}}}};
  const auto payer = chain.payer("payer", at, patch);
  EXPECT_EQ(payer->ended().signal, SIGKILL) << payer->output();
  chain.site().end_leases();
  payer->start_again();
  const auto receiver = chain.receiver();
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  const int found = chain.expect_exact(kPayments);
  if (repeats) {
    EXPECT_EQ(found > 0, *repeats) << found;
  }
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

INSTANTIATE_TEST_SUITE_P(
    CrashTable, OutboxCrashAt,
    testing::Values(OutboxCrash{"claimed:7", {}}, OutboxCrash{"handled:7", {}},
                    OutboxCrash{"committed:7", {}}, OutboxCrash{"batch_handled:1", {}},
                    OutboxCrash{"batch_committed:1", {}}, OutboxCrash{"outbox_taken:1", false},
                    OutboxCrash{"outbox_fenced:1", false}, OutboxCrash{"outbox_offered:1", {}},
                    OutboxCrash{"outbox_sent:1", true}, OutboxCrash{"outbox_removed:1", {}}),
    [](const auto& test) {
      const std::string at = test.param.at;
      return at.substr(0, at.find(':'));
    });

TEST(OutboxChain, StandsThroughKillsOfBothItsWorkers) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 2000;
  Chain chain;
  const auto payer = chain.payer("payer");
  const auto receiver = chain.receiver();
  for (int round = 0; round < 3; ++round) {
    chain.pay(round * 500, 500);
    chain.await_receipts(round * 500 + 50);
    payer->kill();
    receiver->kill();
    payer->start_again();
    receiver->start_again();
  }
  chain.pay(1500, 500);
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  chain.expect_exact(kPayments);
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

TEST(OutboxChain, RepeatsNothingThroughOrderlyRestarts) {
  HAPAX_NEEDS_KAFKA();
  Chain chain;
  const auto receiver = chain.receiver();
  const auto payer = chain.payer("payer");
  for (int round = 0; round < 3; ++round) {
    chain.pay(round * 500, 500);
    chain.await_receipts(round * 500 + 50);
    expect_leaves(*payer);
    payer->start_again();
  }
  chain.await_receipts(1500);
  chain.await_sent();
  chain.site().await_no_lag();
  EXPECT_EQ(chain.expect_exact(1500), 0);
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

// The way to send what waits while no worker may run.
TEST(OutboxChain, HapaxRelaySendsWhatWaitsAndLeaves) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 500;
  Chain chain;
  Site& site = chain.site();
  // No living relay holds it, so the worker sends nothing.
  site.database().run("INSERT INTO hapax.leases (name, holder, until) VALUES ('outbox of " +
                      site.group() + "', 'nobody', now() + interval '1 hour')");
  const auto payer = chain.payer("payer");
  chain.pay(0, kPayments);
  site.await_booked(kPayments);
  payer->kill();
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox"), kPayments);
  site.end_leases();
  chain.pay(kPayments, 1);  // it consumes nothing
  WorkerOptions options = site.options("relay", {{"publish", {{"topics", {chain.receipts()}}}}});
  options.command = "relay";
  WorkerProcess relay(std::move(options));
  chain.await_sent();
  expect_leaves(relay);
  EXPECT_EQ(chain.expect_topic_exact(kPayments), 0);
  site.expect_exact(kPayments);
}

// The frozen relay wakes with records in hand that its successor has sent. It also gets answers to
// records that are not its own any more.
TEST(OutboxChain, StandsARelayThatIsFrozenBeyondItsLease) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 3000;
  Chain chain;
  const auto receiver = chain.receiver();
  const auto frozen = chain.payer("frozen");
  frozen->await("outbox_taken");
  const auto other = chain.payer("other");
  chain.pay(0, kPayments);
  chain.await_receipts(kPayments / 10);
  frozen->freeze();
  other->await("outbox_taken", {}, 1, 60s);
  chain.await_receipts(kPayments / 2);
  frozen->thaw();
  frozen->await("outbox_lost", {}, 1, 60s);
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  chain.expect_exact(kPayments);
  EXPECT_EQ(chain.site().database().value("SELECT epoch >= 2 FROM hapax.leases WHERE name LIKE "
                                          "'outbox of %'"),
            "t");
  expect_leaves(*frozen);
  expect_leaves(*other);
  expect_leaves(*receiver);
}

TEST(OutboxChain, StandsACrashOfPostgres) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 3000;
  Chain chain;
  const auto payer = chain.payer("payer");
  const auto receiver = chain.receiver();
  chain.pay(0, kPayments);
  chain.await_receipts(kPayments / 10);
  test::postgres().kill();
  Later back([] { test::postgres().start(); });
  for (WorkerProcess* worker : {payer.get(), receiver.get()}) worker->await("postgres_down");
  back.end();
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  chain.expect_exact(kPayments);
  EXPECT_EQ(payer->count("outbox_taken"), 2U) << "ids may name other rows after a crash";
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

TEST(OutboxChain, WaitsForKafkaAndRepeatsNothingForIt) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 3000;
  Chain chain;
  const auto payer = chain.payer("payer");
  const auto receiver = chain.receiver();
  chain.pay(0, kPayments);
  chain.await_receipts(kPayments / 10);
  shared_kafka().kill();
  Later back([] { shared_kafka().start(); });
  // The lanes go on with what they have read.
  chain.site().await("SELECT count(*) > 0 FROM hapax.outbox", "t");
  payer->await("outbox_delayed", {}, 1, 60s);
  back.end();
  payer->await("outbox_goes_on", {}, 1, 60s);
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  EXPECT_EQ(chain.expect_exact(kPayments), 0);
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

}  // namespace
}  // namespace hapax::support
