// A leave is clean, which lets a changed key spec in, only where no message runs on.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr const char* kOwner = "SELECT owner FROM hapax.checkpoints";
constexpr const char* kHeld =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";

// Its key is another's: another header.
nlohmann::json other_spec() { return {{"route", {{"key", {{"header", "other-key"}}}}}}; }

TEST(Leave, IsNotCleanWhileAMessageRunsSoAChangedKeySpecIsRefused) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hold"}}));
  const auto worker = site.worker(
      "w", {{"postgres", {{"lock_timeout", "20s"}}}, {"worker", {{"revoke_timeout", "100ms"}}}});
  site.await(kHeld, "1");
  expect_leaves(*worker);
  EXPECT_EQ(worker->count("revoke_timeout"), 1U);
  EXPECT_EQ(site.database().value(kOwner), "w");

  const auto changed = site.worker("changed", other_spec());
  changed->await("halted", {{"reason", "key_spec_changed"}});
  expect_leaves(*changed);
}

TEST(Leave, IsCleanWhereNothingRunsSoAChangedKeySpecIsLetIn) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 5);
  const auto worker = site.worker("w");
  site.await_no_lag();
  expect_leaves(*worker);
  EXPECT_EQ(site.database().value(kOwner), "null");
  const auto changed = site.worker("changed", other_spec());
  changed->await("partition_started");
  expect_leaves(*changed);
}

TEST(Leave, OfAHandlerThatCallsExitIsAFailure) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "exit"}}));  // with 0
  const auto worker = site.worker("w");
  EXPECT_EQ(worker->ended().code, 1) << worker->output();
  EXPECT_EQ(worker->count("handler_exited"), 1U);
  EXPECT_EQ(site.database().value(kOwner), "w");
}

}  // namespace
}  // namespace hapax::support
