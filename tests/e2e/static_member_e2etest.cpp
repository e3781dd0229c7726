// Static members (kafka.group.instance.id) come back without a rebalance.
#include <gtest/gtest.h>

#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(StaticMember, WorksOffAPartitionThatWasAddedWhileItWasDead) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer before(site.bootstrap());
  site.pay(before, 0, 1);
  const auto worker = site.worker("w", {{"kafka", {{"group.instance.id", "w"}}}});
  site.await_booked(1);
  worker->kill();
  add_partitions(site.bootstrap(), site.topic(), 2);
  Outgoing added = site.payment(1);
  added.partition = 1;
  Producer(site.bootstrap()).send(added);
  worker->start_again();
  site.await_booked(2);
  expect_leaves(*worker);
  site.expect_exact(2);
}

}  // namespace
}  // namespace hapax::support
