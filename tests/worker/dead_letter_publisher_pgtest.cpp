// The publisher of dead letters without a worker and a Kafka around it.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "support/database.hpp"
#include "worker/dead_letter_publisher.hpp"

namespace hapax::worker {
namespace {

// After a failover its idle session may lead to an old primary that lives on.
TEST(DeadLetterPublisher, DoesNotKeepItsSessionForEver) {
  test::Database database;
  observe::Metrics metrics({});
  observe::Health health;
  PostgresState postgres(health, metrics, std::chrono::seconds(1));
  std::atomic<int> connected = 0;
  std::promise<void> again;
  DeadLetterPublisherSetup setup{"group",
                                 "w",
                                 [&] {
                                   if (++connected == 2) again.set_value();
                                   return store::Session(database.worker());
                                 },
                                 {}};
  setup.topics = {{"payments", "dead"}};
  setup.session_lasts = {};
  const DeadLetterPublisher publisher(setup, postgres, metrics);
  EXPECT_EQ(again.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace hapax::worker
