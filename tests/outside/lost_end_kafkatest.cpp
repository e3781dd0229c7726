// A failover may lose the end of a call, and keep its take and the lease of its worker.
#include <gtest/gtest.h>

#include "outside/shop.hpp"

namespace hapax::support {
namespace {

// Its message may be another worker's by now, which waits as long as the lease is renewed.
TEST(LostEnd, OfACallFreesTheKeyThoughItsWorkerLives) {
  Shop shop(kIdempotent, true, Site::on_mock_cluster);
  const auto worker = shop.worker("w");
  shop.send(0);
  shop.await_charges(1);
  shop.site.await("SELECT status FROM hapax.idempotency_keys", "completed");
  shop.site.database().run(
      "UPDATE hapax.idempotency_keys SET status = 'started', expires_at = 'infinity', holder = "
      "(SELECT id FROM hapax.holders)");
  shop.site.await("SELECT holder IS NULL FROM hapax.idempotency_keys", "t");
  EXPECT_EQ(shop.value("SELECT status, calls FROM hapax.idempotency_keys"), "started|1")
      << "it may have happened";
}

}  // namespace
}  // namespace hapax::support
