// A worker or a gate of `hapax demo`: this binary once more, with a configuration of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sandbox/child_process.hpp"
#include "sandbox/postgres_server.hpp"

namespace hapax::app {

// A partition of a killed worker moves when the group has missed it for so long. Not less: the
// built-in broker keeps the first who joins waiting for 3 s.
inline constexpr std::chrono::seconds kDemoSessionTimeout{6};

// Whom workers and gates connect as.
inline constexpr const char* kDemoWorkerRole = "hapax_worker";

// With an empty database "demo". Throws: Stop.
std::unique_ptr<sandbox::PostgresServer> start_demo_postgres();

// Thread safety: none; start it from a thread that outlives it (see ChildProcess).
class DemoProcess {
 public:
  // `hapax <command>`. Writes <folder>/<name>.json. Throws: std::runtime_error.
  DemoProcess(const std::filesystem::path& folder, std::string name, std::string command,
              const nlohmann::ordered_json& config);

  // Throws: std::system_error.
  void start();

  // Stops it at once, so that its state can be looked at before it is killed.
  void freeze() { process_->signal(SIGSTOP); }
  void thaw() { process_->signal(SIGCONT); }

  // SIGKILL. Blocks: until it is gone.
  void kill();

  // SIGTERM: it drains and leaves.
  void terminate() { process_->signal(SIGTERM); }

  // How it ended; nothing while it runs. Blocks: at most `timeout`.
  std::optional<sandbox::Exit> wait(std::chrono::milliseconds timeout) {
    return process_->wait(timeout);
  }

  // Waits a little. Throws: Stop with the last lines of its log if it has ended by itself.
  void expect_running(std::chrono::milliseconds wait);

  const std::string& name() const { return name_; }
  std::string text() const;  // "worker-1 (pid 4711)"
  const std::filesystem::path& config() const { return config_; }
  std::string last_lines() const;  // of its log

 private:
  std::string name_;
  std::string command_;
  std::filesystem::path config_;
  std::filesystem::path log_;
  std::unique_ptr<sandbox::ChildProcess> process_;
};

// What a worker of this name is told.
nlohmann::ordered_json demo_worker(const std::string& name, const std::string& bootstrap,
                                   const std::string& postgres_url);

}  // namespace hapax::app
