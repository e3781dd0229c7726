// Workers come, go and are killed in turn while 20,000 messages pass: each is booked once, and
// those of one key in their order.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kStormPartitions = 6;
constexpr int kAccounts = 10;  // as in Site::payment
constexpr int kStormPayments = 20'000;
constexpr int kRounds = 4;
constexpr int kWaves = 3 * kRounds;

// The scripted handler rejects it unless all before it of its account are booked.
void send_wave(const Site& site, Producer& producer, int wave) {
  for (int n = kStormPayments * wave / kWaves; n < kStormPayments * (wave + 1) / kWaves; ++n) {
    Outgoing record = site.payment(n, {{"do", "next"}, {"sequence", n / kAccounts}});
    record.partition = -1;  // by the account
    producer.produce(record);
  }
  producer.flush();
}

TEST(RebalanceStorm, BooksEachOnceAndEachKeyInItsOrder) {
  HAPAX_NEEDS_KAFKA();
  Site site(kStormPartitions);
  Producer producer(site.bootstrap());
  const auto stays = site.worker("stays");
  stays->await("partition_started", {}, kStormPartitions);
  for (int round = 0; round < kRounds; ++round) {
    send_wave(site, producer, 3 * round);
    const auto leaves = site.worker("leaves");
    leaves->await("partition_started");
    send_wave(site, producer, 3 * round + 1);
    const auto dies = site.worker("dies");
    dies->await("assigned");
    send_wave(site, producer, 3 * round + 2);
    expect_leaves(*leaves);
    dies->kill();
  }
  site.await_no_lag();
  site.expect_exact(kStormPayments);
  EXPECT_EQ(
      site.database().value(
          "SELECT count(*) FROM (SELECT amount_minor < lag(amount_minor) OVER "
          "(PARTITION BY account ORDER BY nr) AS behind FROM payments) AS steps WHERE behind"),
      "0")
      << "booked out of order";
  expect_leaves(*stays);
}

}  // namespace
}  // namespace hapax::support
