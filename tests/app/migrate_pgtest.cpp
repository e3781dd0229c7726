// `hapax migrate` beside sessions that hold hapax's tables.
#include "store/operator/migrate.hpp"

#include <gtest/gtest.h>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "store/transaction.hpp"
#include "support/database.hpp"

namespace hapax::app {
namespace {

using namespace std::chrono_literals;

TEST(MigrateCommand, TriesAgainWhileAHandlerHoldsATable) {
  test::Database database;
  store::Session session(database.owner());
  constexpr int kBefore = 14;  // the next migration adds a column to the table
  store::migrate_down(session, kBefore);
  store::Transaction handler(session);
  handler.run("LOCK TABLE hapax.checkpoints IN ACCESS SHARE MODE");
  const sandbox::TemporaryFolder folder("migrate");
  sandbox::ChildProcess migrate(
      {.argv = {HAPAX_BINARY_DIR "/bin/hapax", "migrate", "up", "--url", database.owner().url},
       .environment = {},
       .output = folder.path() / "log"});
  ASSERT_TRUE(migrate.wait_for_line("hapax tries again", 60s));
  handler.commit();
  ASSERT_TRUE(migrate.wait_for_line("applied " + std::to_string(kBefore + 1), 60s));
  ASSERT_TRUE(migrate.wait_for_line("applied " + std::to_string(store::kSchema), 60s));
  EXPECT_TRUE(migrate.wait(60s)->success());
}

TEST(MigrateCommand, NamesTheSessionThatHasTheLockForWhichItWaits) {
  test::Database database;
  store::Session session(database.owner());
  store::migrate_down(session, store::kSchema - 2);
  store::Transaction other(session);
  const std::string pid = other.run("SELECT pg_backend_pid()")[0][0].text();
  other.run("SELECT pg_advisory_xact_lock(448345206136)");
  const sandbox::TemporaryFolder folder("migrate");
  sandbox::ChildProcess migrate(
      {.argv = {HAPAX_BINARY_DIR "/bin/hapax", "migrate", "up", "--url", database.owner().url},
       .environment = {},
       .output = folder.path() / "log"});
  ASSERT_TRUE(migrate.wait_for_line("has the lock of the migrations: pid " + pid + ", role ", 60s));
  other.commit();
  ASSERT_TRUE(migrate.wait_for_line("applied " + std::to_string(store::kSchema), 60s));
  EXPECT_TRUE(migrate.wait(60s)->success());
}

}  // namespace
}  // namespace hapax::app
