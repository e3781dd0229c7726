#include "worker/keeper_session.hpp"

#include <gtest/gtest.h>

#include "observe/health.hpp"
#include "observe/metrics.hpp"
#include "support/database.hpp"

namespace hapax::worker {
namespace {

struct KeeperSessionCase : ::testing::Test {
  store::Session connect() {
    if (is_away) throw lost();
    ++connected;
    return store::Session(database.worker());
  }

  static store::DatabaseError lost() {
    return store::DatabaseError({store::Fault::Kind::connection, "", "the server is gone"});
  }

  bool is_away = false;
  int connected = 0;
  test::Database database;
  observe::Health health;
  observe::Metrics metrics{{}};
  PostgresState postgres{health, metrics, {}};
  KeeperSession session{[this] { return connect(); }, postgres};
};

TEST_F(KeeperSessionCase, KeepsASessionUntilItIsDropped) {
  const store::Session* const first = &session.get();
  EXPECT_EQ(&session.get(), first);
  EXPECT_EQ(connected, 1);
  session.drop();
  session.get();
  EXPECT_EQ(connected, 2);
}

TEST_F(KeeperSessionCase, ALostConnectionIsNoOutageIfAnotherCanBeMade) {
  session.get();
  session.broke("reading", lost());
  EXPECT_FALSE(postgres.is_down());
  session.get();
  EXPECT_EQ(connected, 3) << "the lost session is not used again";
}

TEST_F(KeeperSessionCase, AnOutageLastsUntilAConnectionCanBeMade) {
  is_away = true;
  session.broke("reading", lost());
  EXPECT_TRUE(postgres.is_down());
  session.look_for_postgres();
  EXPECT_TRUE(postgres.is_down());
  is_away = false;
  session.look_for_postgres();
  EXPECT_FALSE(postgres.is_down());
}

TEST_F(KeeperSessionCase, AFullDiskIsAnOutageThoughConnectionsCanBeMade) {
  session.broke("writing", store::DatabaseError({store::Fault::Kind::sql, "53100", "full"}));
  EXPECT_TRUE(postgres.is_down());
}

}  // namespace
}  // namespace hapax::worker
