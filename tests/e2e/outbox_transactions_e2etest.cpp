// publish.transactions in whole workers: what consumers with read_committed get while a relay, the
// broker or PostgreSQL is killed or frozen.
#include <gtest/gtest.h>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "support/chain.hpp"
#include "support/kafka_admin.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;

const nlohmann::json kTransactions = {{"publish", {{"transactions", true}}}};

class TransactedCrashAt : public testing::TestWithParam<const char*> {};

TEST_P(TransactedCrashAt, EachRecordIsThereOnceAndInOrder) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 60;
  Chain chain;
  chain.pay(0, kPayments / 2);
  const auto payer = chain.payer("payer", GetParam(), kTransactions);
  // What comes behind the first batch makes a second one, however slow the machine is.
  if (std::string_view(GetParam()).ends_with(":2"))
    chain.site().await("SELECT count(*) > 0 FROM hapax.outbox_batches", "t");
  chain.pay(kPayments / 2, kPayments / 2);
  EXPECT_EQ(payer->ended().signal, SIGKILL) << payer->output();
  chain.site().end_leases();
  payer->start_again();
  chain.site().await_booked(kPayments);
  chain.await_sent();
  EXPECT_EQ(chain.expect_topic_exact(kPayments), 0);
  expect_leaves(*payer);
}

INSTANTIATE_TEST_SUITE_P(CrashTable, TransactedCrashAt,
                         testing::Values("outbox_taken:1", "outbox_fenced:1",
                                         "outbox_kafka_fenced:1", "outbox_marker_renewed:1",
                                         "outbox_batch_opened:1", "outbox_batch_offered:1",
                                         "outbox_batch_produced:1", "outbox_batch_marked:1",
                                         "outbox_batch_committed:1", "outbox_batch_settled:1",
                                         "outbox_batch_opened:2", "outbox_batch_produced:2",
                                         "outbox_batch_committed:2", "outbox_batch_settled:2"),
                         [](const auto& test) {
                           std::string name = test.param;
                           name[name.find(':')] = '_';
                           return name;
                         });

// The next relay dies, too, while it finds out what became of the batch.
class TransactedCrashesTwice : public testing::TestWithParam<std::pair<const char*, const char*>> {
};

TEST_P(TransactedCrashesTwice, EachRecordIsThereOnceAndInOrder) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 60;
  Chain chain;
  chain.pay(0, kPayments);
  const auto payer = chain.payer("payer", GetParam().first, kTransactions);
  EXPECT_EQ(payer->ended().signal, SIGKILL) << payer->output();
  chain.site().end_leases();
  payer->start_again(GetParam().second);
  EXPECT_EQ(payer->ended(60s).signal, SIGKILL) << payer->output();
  chain.site().end_leases();
  payer->start_again();
  chain.site().await_booked(kPayments);
  chain.await_sent();
  EXPECT_EQ(chain.expect_topic_exact(kPayments), 0);
  expect_leaves(*payer);
}

INSTANTIATE_TEST_SUITE_P(
    CrashTable, TransactedCrashesTwice,
    testing::Values(std::pair("outbox_batch_marked:1", "outbox_kafka_fenced:1"),
                    std::pair("outbox_batch_committed:1", "outbox_kafka_fenced:1"),
                    std::pair("outbox_batch_committed:1", "outbox_marker_renewed:1"),
                    std::pair("outbox_batch_committed:1", "outbox_batch_settled:1"),
                    std::pair("outbox_batch_opened:1", "outbox_batch_opened:1")),
    [](const auto& test) { return "pair_" + std::to_string(test.index); });

TEST(TransactedChain, StandsKillsOfTheRelayUnderLoad) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 2000;
  Chain chain;
  const auto receiver = chain.receiver();
  const auto payer = chain.payer("payer", {}, kTransactions);
  for (int round = 0; round < 4; ++round) {
    chain.pay(round * 500, 500);
    chain.await_receipts(round * 500 + 50);
    payer->kill();
    payer->start_again();
  }
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  EXPECT_EQ(chain.expect_exact(kPayments), 0);
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

// The frozen relay wakes in the middle of a batch that its successor has judged.
TEST(TransactedChain, StandsARelayThatIsFrozenBeyondItsLease) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 3000;
  Chain chain;
  const auto receiver = chain.receiver();
  const auto frozen = chain.payer("frozen", {}, kTransactions);
  frozen->await("outbox_taken");
  const auto other = chain.payer("other", {}, kTransactions);
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
  EXPECT_EQ(chain.expect_exact(kPayments), 0);
  expect_leaves(*frozen);
  expect_leaves(*other);
  expect_leaves(*receiver);
}

// Shows the log of the worker if an exception ends the test.
struct LogOfAFailure {
  ~LogOfAFailure() {
    if (std::uncaught_exceptions() > 0) std::cerr << worker.output();
  }
  const WorkerProcess& worker;
};

bool has_open_transaction(Chain& chain) {
  const std::string& kafka = chain.site().bootstrap();
  for (int partition = 0; partition < 3; ++partition)
    if (last_stable_offset(kafka, chain.receipts(), partition) <
        end_offset(kafka, chain.receipts(), partition))
      return true;
  try {
    committed(kafka, "hapax-outbox/" + chain.site().group() + "/" + chain.receipts(),
              chain.receipts(), 0);
  } catch (const std::runtime_error&) {  // the broker is there: the marker is no stable offset
    return true;
  }
  return false;
}

// If the only broker goes just after it took a commit, Kafka 4.3 may leave the transaction open for
// ever (KAFKA-20734, docs/outbox.md). Nothing that the relay could do would help. Precondition: no
// relay runs. Kafka ends what a relay left open after 10 s, and looks for it every 10 s.
bool kafka_left_a_transaction_open(Chain& chain) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (has_open_transaction(chain)) {
    if (std::chrono::steady_clock::now() > deadline) return true;
    std::this_thread::sleep_for(500ms);
  }
  return false;
}

TEST(TransactedChain, StandsABrokerThatIsRestarted) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 3000;
  Chain chain;
  const auto payer = chain.payer("payer", {}, kTransactions);
  const auto receiver = chain.receiver();
  const LogOfAFailure log{*payer};
  chain.pay(0, kPayments);
  try {
    for (int round = 1; round <= 2; ++round) {
      chain.await_receipts(round * kPayments / 10);
      shared_kafka().stop();
      shared_kafka().start();
    }
    chain.await_receipts(kPayments);
    chain.await_sent();
    chain.site().await_no_lag();
  } catch (const std::exception&) {
    payer->kill();
    if (!kafka_left_a_transaction_open(chain)) throw;
    GTEST_SKIP() << "NOT TESTED: Kafka has left a transaction open (KAFKA-20734)";
  }
  EXPECT_EQ(chain.expect_exact(kPayments), 0);
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

TEST(TransactedChain, StandsACrashOfPostgres) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kPayments = 3000;
  Chain chain;
  const auto payer = chain.payer("payer", {}, kTransactions);
  const auto receiver = chain.receiver();
  chain.pay(0, kPayments);
  chain.await_receipts(kPayments / 10);
  test::postgres().kill();
  test::postgres().start();
  chain.await_receipts(kPayments);
  chain.await_sent();
  chain.site().await_no_lag();
  EXPECT_EQ(chain.expect_exact(kPayments), 0);
  expect_leaves(*payer);
  expect_leaves(*receiver);
}

}  // namespace
}  // namespace hapax::support
