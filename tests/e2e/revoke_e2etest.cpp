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

}  // namespace
}  // namespace hapax::support
