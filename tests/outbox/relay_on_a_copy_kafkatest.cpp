// A relay whose database was replaced by a copy of it while it had the lease.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "kafka/mock_cluster.hpp"
#include "outbox/relay_ground.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

struct CopyCluster {
  CopyCluster() { cluster.create_topic("receipts", 3); }
  kafka::MockCluster cluster;
};

class RelayOnACopy : protected CopyCluster, public RelayGround {
 protected:
  RelayOnACopy() : RelayGround(cluster.bootstrap(), {{"receipts", 3}}) {}
};

// Its name leads to the copy then, as after two ALTER DATABASE … RENAME. The copy has the lease's
// row, and server and incarnation are the original's.
TEST_F(RelayOnACopy, SendsNothing) {
  std::atomic<const test::Database*> reached = &database;
  RelaySetup with = setup();
  with.connect = [&reached] {
    const test::Database* const now = reached;
    if (now == nullptr) throw std::runtime_error("PostgreSQL is away");
    return store::Session(now->worker());
  };
  Running relay(std::move(with), "w");
  database.run(rows("receipts", 0, 10));
  await_sent();
  reached = nullptr;
  const std::string sessions =
      "FROM pg_stat_activity WHERE usename = 'hapax_worker' AND datname = current_database()";
  database.run("SELECT pg_terminate_backend(pid) " + sessions);
  database.wait_until("SELECT count(*) " + sessions, "0");
  database.run(rows("receipts", 10, 10));
  const auto copy = database.copy();
  reached = copy.get();
  copy->wait_until("SELECT count(*) > 0 " + sessions, "t");
  std::this_thread::sleep_for(3s);
  EXPECT_EQ(copy->count("SELECT count(*) FROM hapax.outbox"), 10);
  expect_exact("receipts", 10);
}

}  // namespace
}  // namespace hapax::outbox
