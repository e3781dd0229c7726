// The main job, with a real Kafka and a real PostgreSQL. Two workers of one group run the payments
// plugin of examples/, and one of them is killed half-way.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kJobPartitions = 8;
constexpr int kJobPayments = 90'000;
constexpr int kDuplicates = 10'000;  // of every ninth payment, sent once more

Outgoing by_key(Outgoing record) {
  record.partition = -1;
  return record;
}

// The second delivery comes some thousand messages after the first. So both workers, and both lives
// of the killed one, get first and second deliveries.
void send_all(const Site& site) {
  constexpr int kBehind = 5'000;
  Producer producer(site.bootstrap(), {{"linger.ms", "20"}, {"compression.codec", "lz4"}});
  for (int number = 0; number < kJobPayments + kBehind; ++number) {
    if (number < kJobPayments) producer.produce(by_key(site.payment(number)));
    const int again = number - kBehind;
    if (again >= 0 && again % 9 == 0) producer.produce(by_key(site.payment(again)));
  }
  producer.flush();
}

TEST(MainJob, BooksEachOf100000PaymentsOnceThoughAWorkerIsKilledHalfWay) {
  HAPAX_NEEDS_KAFKA();
  Site site(kJobPartitions);
  send_all(site);
  const nlohmann::json payments = {{"handler", "payments"},
                                   {"plugin", HAPAX_BINARY_DIR "/lib/libpayments.so"}};
  const nlohmann::json patch = {{"route", payments}, {"worker", {{"lanes", 8}}}};
  const auto one = site.worker("one", patch);
  const auto two = site.worker("two", patch);

  site.await_booked(kJobPayments / 2);
  EXPECT_GT(one->count("partition_started"), 0U);
  EXPECT_GT(two->count("partition_started"), 0U);
  one->kill();
  one->start_again();
  site.await_no_lag(std::chrono::seconds(180));

  site.expect_exact(kJobPayments);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.idempotency_keys"),
            std::to_string(kJobPayments));
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
  EXPECT_EQ(site.database().value("SELECT sum(next_offset) FROM hapax.checkpoints"),
            std::to_string(kJobPayments + kDuplicates))
      << "all were delivered, the duplicates too";
  one->await("partition_started");  // it has joined again and does its share
  expect_leaves(*one);
  expect_leaves(*two);

  const Said audit = hapax({"audit", "--topic", site.topic()}, one->config());
  EXPECT_EQ(audit.code, 0) << audit.text;
  EXPECT_NE(audit.text.find("every offset is accounted for"), std::string::npos) << audit.text;
}

}  // namespace
}  // namespace hapax::support
