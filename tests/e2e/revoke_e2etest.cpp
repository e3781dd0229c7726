// What a revoke owes the next owner: the halts that its own drain brought up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr const char* kHeld =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";

// `one` runs a message that will halt its route when a second worker takes the partition. Later
// checkpoints of `one` are far away, so only the revoke itself can record the halt.
TEST(Revoke, RecordsTheHaltThatItsDrainAskedForBeforeTheNextOwnerStarts) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  for (int partition = 0; partition < 2; ++partition)
    producer.send(site.payment(partition, {{"do", "commit"}}));
  const nlohmann::json patch = {
      {"postgres", {{"lock_timeout", "20s"}}},
      {"worker", {{"checkpoint_interval", "1m"}, {"revoke_timeout", "10s"}}},
      {"kafka", {{"session.timeout.ms", 10'000}}}};
  const auto one = site.worker("one", patch);
  site.await(kHeld, "2");
  const auto two = site.worker("two", patch);
  one->await("revoked");
  site.database().run("SELECT pg_advisory_unlock(1)");

  const auto halted = two->await("halted", {{"reason", "handler_ended_transaction"}});
  EXPECT_THAT(halted.at("sentence").get<std::string>(),
              testing::HasSubstr("stopped on purpose since"));
  EXPECT_EQ(site.database().value("SELECT halted_by, whole_route FROM hapax.halts"), "one|t");
  EXPECT_EQ(two->count("partition_started"), 0U);
  EXPECT_EQ(site.database().value("SELECT last_value FROM payments_nr_seq"), "2")
      << "the message ran again";
  expect_leaves(*one);
  expect_leaves(*two);
}

// The group has taken the partition away since, so the leave does not drain it. Its lane is busy.
TEST(Revoke, DoesNotHideAHandlerThatDoesNotComeBackWhenTheWorkerLeaves) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hang"}}));
  nlohmann::json patch = {
      {"kafka", {{"client.id", "z"}}},
      {"worker", {{"revoke_timeout", "500ms"}, {"shutdown_timeout", "2s"}}},
      {"postgres", {{"idle_in_transaction_timeout", "1h"}, {"lock_timeout", "20s"}}}};
  const auto first = site.worker("first", patch);
  site.await(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
      "AND state = 'idle in transaction' AND now() - state_change > interval '300 ms'",
      "1");
  // Kafka's members stand in the order of their ids, and so do their partitions.
  patch["kafka"]["client.id"] = "a";
  const auto second = site.worker("second", patch);
  second->await("partition_started", {{"partition", 0}});
  first->await("still_runs", {{"partition", 0}, {"offset", 0}});
  EXPECT_EQ(first->stop().code, 1);
  first->await("still_runs", {{"partition", 0}, {"offset", 0}}, 2);
  first->await("handlers_run");
  second->kill();
}

}  // namespace
}  // namespace hapax::support
