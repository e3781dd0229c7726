// A topic that gets more partitions.
#include <gtest/gtest.h>

#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(AddedPartition, IsReadByAWorkerThatRuns) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer before(site.bootstrap());
  site.pay(before, 0, 1);
  const auto worker = site.worker("w", {{"kafka", {{"topic.metadata.refresh.interval.ms", 1000}}}});
  site.await_booked(1);
  add_partitions(site.bootstrap(), site.topic(), 2);
  Outgoing added = site.payment(1);
  added.partition = 1;
  Producer(site.bootstrap()).send(added);
  site.await_booked(2);
  expect_leaves(*worker);
  site.expect_exact(2);
}

}  // namespace
}  // namespace hapax::support
