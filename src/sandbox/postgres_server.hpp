// A PostgreSQL of our own, thrown away afterwards: for `hapax demo`, the tests and the test kit.
//
// It has fsync on and logged tables as in production, so that a test that crashes it learns the
// truth. It listens on 127.0.0.1 only and trusts every client.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::sandbox {

struct PostgresOptions {
  // The folder of data and log. It is kept, and used again if it already holds a server's data.
  // Empty: a temporary folder.
  std::filesystem::path folder = {};
  // As in postgresql.conf, such as {"synchronous_commit", "off"}.
  std::vector<std::pair<std::string, std::string>> settings = {};
  // 0: a free port.
  std::uint16_t port = 0;
};

// Throws: std::runtime_error. If this machine has no PostgreSQL server, it names the package to
// install. If the server does not start or stop, it has the server's own words.
// Thread safety: none; start it from a thread that outlives it (see ChildProcess).
class PostgresServer {
 public:
  // Makes the cluster and starts the server. Blocks: seconds; at most a minute each.
  explicit PostgresServer(PostgresOptions options = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Starts it again after stop() or kill(), on the same port and data, and waits until it accepts
  // connections. After kill() that includes crash recovery. A standby accepts readers. Blocks: at
  // most a minute.
  void start();

  // Disconnects clients, rolls back, writes everything down ("fast"). Blocks: at most a minute.
  void stop();

  // A crash: SIGKILL for the server and all its processes at once. Returns when they are gone.
  void kill();

  bool running();

  // One of the programs beside the server, such as pg_basebackup, to be run as the server's user;
  // its output goes to our log.
  Program program(const std::string& name, std::vector<std::string> arguments) const;

  // Throws: std::runtime_error (it is there already, a bad name). Blocks: at most a minute.
  void create_database(const std::string& name);

  // For libpq. Names need no escaping: letters, digits and underscores only.
  std::string url(const std::string& database = "postgres",
                  const std::string& user = "postgres") const;

  std::uint16_t port() const { return port_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path log() const { return folder_ / "postgres.log"; }

 private:
  void make_cluster();

  PostgresOptions options_;
  std::filesystem::path binaries_;
  std::string user_;  // whom to run as; empty: us
  std::uint16_t port_;
  std::unique_ptr<TemporaryFolder> temporary_;
  std::filesystem::path folder_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace hapax::sandbox
