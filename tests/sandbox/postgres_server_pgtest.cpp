#include "sandbox/postgres_server.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <pqxx/pqxx>
#include <stdexcept>

namespace hapax::sandbox {
namespace {

// First field of what the statement returns; commits.
std::string ask(const std::string& url, const std::string& sql) {
  pqxx::connection connection(url);
  pqxx::work transaction(connection);
  const pqxx::result rows = transaction.exec(sql);
  transaction.commit();
  return rows.empty() ? "" : rows[0][0].c_str();
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "(no exception)";
}

constexpr const char* kMakeTables =
    "CREATE TABLE logged AS SELECT 1 AS n; CREATE UNLOGGED TABLE unlogged AS SELECT 1 AS n";

TEST(PostgresServer, FlushesAsInProductionAndTakesSettings) {
  const PostgresServer server({{}, {{"work_mem", "7MB"}}});
  EXPECT_EQ(ask(server.url(), "SHOW fsync"), "on");
  EXPECT_EQ(ask(server.url(), "SHOW server_encoding"), "UTF8");
  EXPECT_EQ(ask(server.url(), "SHOW work_mem"), "7MB");
}

// The emptied unlogged table proves that it was a crash; the full one below, that it was none.
TEST(PostgresServer, RecoversFromAKillOnTheSamePort) {
  PostgresServer server;
  ask(server.url(), kMakeTables);
  const std::string url = server.url();
  pqxx::connection open_session(url);
  for (int i = 0; i < 3; ++i) {
    server.kill();
    EXPECT_FALSE(server.running());
    server.start();
    EXPECT_EQ(ask(url, "SELECT count(*) FROM logged"), "1");
    EXPECT_EQ(ask(url, "SELECT count(*) FROM unlogged"), "0");
  }
}

// It cannot notice that the server has died, and a new server refuses to start beside it.
TEST(PostgresServer, KillsABackendThatHangs) {
  PostgresServer server;
  pqxx::connection session(server.url());
  const pid_t pid = session.backendpid();
  const WatchedProcess backend(pid);
  ::kill(pid, SIGSTOP);
  server.kill();
  EXPECT_TRUE(backend.wait_for_end(std::chrono::milliseconds(0)));
  server.start();
}

TEST(PostgresServer, StopsCleanlyWhileClientsAreConnected) {
  PostgresServer server;
  ask(server.url(), kMakeTables);
  pqxx::connection open_session(server.url());
  server.stop();
  EXPECT_FALSE(server.running());
  server.start();
  EXPECT_EQ(ask(server.url(), "SELECT count(*) FROM unlogged"), "1");
}

TEST(PostgresServer, CreatesDatabases) {
  PostgresServer server;
  server.create_database("orders");
  EXPECT_EQ(ask(server.url("orders"), "SELECT current_database()"), "orders");
  EXPECT_NE(message_of([&] { server.create_database("orders"); }).find("already exists"),
            std::string::npos);
}

TEST(PostgresServer, UsesAGivenFolderAgain) {
  const TemporaryFolder parent("test");
  // The service user must be able to reach it.
  std::filesystem::permissions(parent.path(), std::filesystem::perms(0755));
  const PostgresOptions options{parent.path() / "kept", {}};
  ask(PostgresServer(options).url(), kMakeTables);
  EXPECT_EQ(ask(PostgresServer(options).url(), "SELECT count(*) FROM unlogged"), "1");
}

TEST(PostgresServer, QuotesTheServerIfItDoesNotStart) {
  const std::string message = message_of([] {
    PostgresServer server({{}, {{"no_such_setting", "1"}}});
  });
  EXPECT_NE(message.find("no_such_setting"), std::string::npos) << message;
}

}  // namespace
}  // namespace hapax::sandbox
