// A child process for the demo and the tests: PostgreSQL, Kafka, a worker to kill.
//
// No child may survive its parent: the destructor kills it, and if the parent is SIGKILLed, the
// kernel signals it. The child prints to a file, not to a pipe. If a pipe's reader died or were
// slow, the child would get SIGPIPE or block. A test would take that for a fault of the child.
// Lines are still read as they come (inotify).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/descriptor.hpp"
#include "sandbox/watched_process.hpp"

namespace hapax::sandbox {

struct Program {
  std::vector<std::string> argv;  // argv[0] is searched in PATH unless it holds a slash
  std::map<std::string, std::string> environment = {};  // added to ours
  std::filesystem::path folder = {};                    // working directory; empty: ours
  std::filesystem::path output = {};  // stdout and stderr are appended here; empty: ours
  std::string user = {};              // run as this user; empty: as we are. Needs root
  int death_signal = SIGKILL;         // what the child gets when its parent dies
};

struct Exit {
  int code = 0;    // exit code, if it ended by itself
  int signal = 0;  // what killed it, or 0

  bool success() const { return code == 0 && signal == 0; }
  std::string text() const;  // "exit code 1", "signal 9"
};

// Thread safety: none; one thread at a time.
class ChildProcess {
 public:
  // Starts the program. The kernel binds the death signal to the *thread* that starts it, and sends
  // the signal when that thread ends. So start from a thread that outlives the child. Throws:
  // std::system_error (no such program or user, not allowed).
  explicit ChildProcess(const Program& program);

  // If the child still runs, kills it with SIGKILL. Blocks: until the kernel has ended it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Does nothing if the child has ended.
  void signal(int number);

  // How it ended; nothing while it runs. Blocks: at most `timeout`.
  std::optional<Exit> wait(std::chrono::milliseconds timeout);
  bool running() { return !wait(std::chrono::milliseconds(0)).has_value(); }

  // The next whole line of its output (without the newline), in order, each once. Nothing at the
  // timeout, or if the child has ended and no line is left. Blocks: at most `timeout`.
  // Precondition: `output` was given.
  std::optional<std::string> read_line(std::chrono::milliseconds timeout);

  // Reads up to the first line that holds `part`; false if read_line() would have returned nothing.
  // Blocks: at most `timeout`.
  bool wait_for_line(std::string_view part, std::chrono::milliseconds timeout);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  std::optional<std::string> take_line();
  bool wait_for_change(Deadline deadline);

  pid_t pid_ = -1;
  WatchedProcess process_;
  Descriptor output_;   // read side of the output file
  Descriptor changes_;  // inotify on it
  std::string unread_;
  std::optional<Exit> exit_;
};

// Runs a program to its end. Throws: std::runtime_error with the command and what it printed if
// it fails or takes longer than `timeout`, beside what ChildProcess throws. Blocks: at most
// `timeout`. Precondition: `output` is given.
void run_to_end(const Program& program, std::chrono::milliseconds timeout);

// The first executable of this name in PATH.
std::optional<std::filesystem::path> find_in_path(const std::string& name);

}  // namespace hapax::sandbox
