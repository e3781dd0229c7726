// A worker in a process of its own, for tests that kill, freeze and stop it.
//
// Waits for the worker's log lines (JSON) and for /readyz.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {

struct WorkerOptions {
  nlohmann::json config;      // as in worker.json, beside admin and log, which are set
  std::string crash_at = {};  // "claimed:3": a binary that kills itself there (crash_point.hpp)
  std::string command = "run";
};

struct Answer {
  int status = 0;  // 0: there was no answer
  std::string body;
};

// Throws from every function that waits: std::runtime_error with the worker's whole log at the
// timeout. Thread safety: none; start it from a thread that outlives it (see ChildProcess).
class WorkerProcess {
 public:
  explicit WorkerProcess(WorkerOptions options);

  // Returns when the worker has logged `event` `times` times since its (last) start, each with at
  // least these fields; the last of them. Throws also if the worker has ended before.
  nlohmann::json await(const std::string& event, const nlohmann::json& fields = {},
                       std::size_t times = 1,
                       std::chrono::milliseconds timeout = std::chrono::seconds(120));

  // Returns when it has logged `event` (false) or has ended without that (true).
  bool dies_before(const std::string& event);

  // How often it has logged that up to now.
  std::size_t count(const std::string& event, const nlohmann::json& fields = {});

  void terminate();  // SIGTERM

  // The same, then its end, which must come within `timeout`.
  sandbox::Exit stop(std::chrono::milliseconds timeout = std::chrono::seconds(10));
  // Its end, without asking for it.
  sandbox::Exit ended(std::chrono::milliseconds timeout = std::chrono::seconds(120));

  void kill();    // SIGKILL; returns when it is gone
  void freeze();  // SIGSTOP
  void thaw();

  // The same worker once more, after its end; `crash_at` as in WorkerOptions.
  void start_again(const std::string& crash_at = {});

  // Of its admin server: "http://127.0.0.1:9464".
  std::string address();
  // Asks its admin server. Blocks: at most seconds.
  Answer get(const std::string& path);

  // Returns when /readyz answers 200, or 503 with `reason` in its body.
  void await_ready();
  void await_not_ready(const std::string& reason);

  // Returns when /metrics has this line.
  void await_metric(const std::string& line);

  // Its configuration, for hapax's other commands.
  std::filesystem::path config() const { return folder_.path() / "worker.json"; }

  // All it has printed since its (last) start.
  std::string output() const;

 private:
  void start();
  void read_lines();
  std::optional<nlohmann::json> find(const std::string& event, const nlohmann::json& fields,
                                     std::size_t times, std::chrono::milliseconds timeout);
  std::vector<nlohmann::json> matching(const std::string& event, const nlohmann::json& fields);
  [[noreturn]] void fail(const std::string& what) const;

  WorkerOptions options_;
  sandbox::TemporaryFolder folder_;
  int starts_ = 0;
  std::vector<nlohmann::json> events_;
  std::unique_ptr<sandbox::ChildProcess> process_;
};

}  // namespace hapax::support
