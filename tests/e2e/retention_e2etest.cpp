// What an open transaction hides in Kafka's log holds keys, too.
#include <gtest/gtest.h>

#include <thread>

#include "support/site.hpp"

namespace hapax::support {
namespace {

// A consumer with read_committed is told that the log ends before the transaction.
TEST(RetentionOfKeys, HoldsThoseOfAMessageBehindTheOpenTransactionOfAnother) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0));
  const auto worker = site.worker("w");
  site.await_booked(1);
  Producer open(site.bootstrap(), {{"transactional.id", site.topic()}});
  open.begin();
  open.send(site.payment(1));
  producer.send(site.payment(0));  // in the log before its key expires
  site.database().run("UPDATE hapax.idempotency_keys SET expires_at = now()");
  std::this_thread::sleep_for(std::chrono::seconds(22));  // a round of retention is every 10 s
  open.commit();
  site.await("SELECT next_offset FROM hapax.checkpoints", "4");  // with the mark of the commit
  site.expect_exact(2);
  site.await("SELECT count(*) FROM hapax.idempotency_keys WHERE key = 'p0'", "0");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
