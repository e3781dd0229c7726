// Retention beside the claims of two workers: what has expired goes, what has not stays, and one
// worker does it.
#include <gtest/gtest.h>

#include <thread>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kRetainedPayments = 200;

TEST(Retention, RemovesExpiredKeysByOneWorkerWhileClaimsGoOn) {
  Site site = Site::on_mock_cluster(2);
  // More than one batch of them.
  site.database().run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) SELECT 'old' || n, 'scripted', 'completed', 'g', 't', "
      "1, 0, n, now() - interval '1 minute' FROM generate_series(1, 2500) n");
  Producer producer(site.bootstrap());
  site.pay(producer, 0, kRetainedPayments);
  const auto one = site.worker("one");
  const auto two = site.worker("two");
  site.await("SELECT count(*) FROM hapax.idempotency_keys WHERE key LIKE 'old%'", "0");
  site.await_no_lag();
  site.expect_exact(kRetainedPayments);
  EXPECT_EQ(site.database().value("SELECT count(*), bool_and(holder IN ('one', 'two')) "
                                  "FROM hapax.leases WHERE name = 'retention'"),
            "1|t");
  // An expired key is a forgotten one: its operation may take effect again.
  Outgoing again = site.payment(kRetainedPayments);
  again.headers = {{"idempotency-key", "old1"}};
  producer.send(again);
  site.await_booked(kRetainedPayments + 1);
  expect_leaves(*one);
  expect_leaves(*two);
}

TEST(Retention, TellsOnceThatItCannotRemoveKeys) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("REVOKE DELETE ON hapax.idempotency_keys FROM hapax_worker");
  const auto worker = site.worker("w");
  EXPECT_EQ(worker->await("retention_delayed").at("sqlstate"), "42501");
  expect_leaves(*worker);
}

// A partition of a group that has left holds the keys of its scope.
TEST(Retention, ShowsHowLongAPartitionHasHeldKeys) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  const auto worker = site.worker("w");
  site.await_no_lag();
  site.database().run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope, "
      "updated_at) SELECT 'gone', topic, 7, 0, key_spec, scope, now() - interval '3 hours' FROM "
      "hapax.checkpoints LIMIT 1");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int behind = 0;
  while (behind < 3 * 3600 && std::chrono::steady_clock::now() < deadline) {
    const std::string metrics = worker->get("/metrics").body,
                      name = "\nhapax_retention_behind_seconds ";
    behind = std::stoi(metrics.substr(metrics.find(name) + name.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a round is every 10 s
  }
  EXPECT_GE(behind, 3 * 3600);
  EXPECT_LT(behind, 3 * 3600 + 120);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
