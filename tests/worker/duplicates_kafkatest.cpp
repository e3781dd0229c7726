// What a duplicate costs and gives, through a whole worker.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kDuplicatedPayments = 20;

// The producer sends each once more, to the other partition; every second one stored a result.
TEST(Duplicates, AreAnsweredWithTheResultThatTheFirstOneStored) {
  Site site = Site::on_mock_cluster(2);
  const auto worker = site.worker("w", {{"route", {{"handler", "answering"}}}});
  Producer producer(site.bootstrap());
  const auto send = [&](int partition_shift) {
    for (int n = 0; n < kDuplicatedPayments; ++n) {
      Outgoing record = site.payment(n, {{"answer", n % 2 == 0}});
      record.partition = (n + partition_shift) % 2;
      producer.produce(record);
    }
    producer.flush();
    site.await_no_lag();
  };
  send(0);
  site.expect_exact(kDuplicatedPayments);
  send(1);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments WHERE account <> 'answers'"),
            std::to_string(kDuplicatedPayments))
      << "an effect stands twice";
  EXPECT_EQ(site.database().value(
                "SELECT count(*) FILTER (WHERE id = 'nothing stored' AND amount_minor % 2 = 0), "
                "count(*) FILTER (WHERE id = 'p' || amount_minor - 1) "
                "FROM payments WHERE account = 'answers'"),
            "10|10");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.dead_letters"), "0");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
