#include "sandbox/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/wait.h>

extern "C" {  // glibc 2.36 forgot it
}

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sandbox/launch.hpp"

namespace hapax::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

}  // namespace

std::string Exit::text() const {
  return signal != 0 ? "signal " + std::to_string(signal) : "exit code " + std::to_string(code);
}

ChildProcess::ChildProcess(const Program& program) {
  Descriptor write_side;
  if (!program.output.empty()) {
    const char* path = program.output.c_str();
    write_side = Descriptor(checked(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
                                    "cannot write " + program.output.string()));
    output_ = Descriptor(checked(open(path, O_RDONLY | O_CLOEXEC), program.output.string()));
    lseek(output_.get(), 0, SEEK_END);  // what was there before is not this child's
    changes_ = Descriptor(checked(inotify_init1(IN_CLOEXEC | IN_NONBLOCK), "inotify"));
    checked(inotify_add_watch(changes_.get(), path, IN_MODIFY), "inotify");
  }
  pid_ = launch(program, write_side.get());
  try {
    process_ = WatchedProcess(pid_);
  } catch (...) {  // an old kernel: no destructor will run
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    throw;
  }
}

ChildProcess::~ChildProcess() {
  if (exit_) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::signal(int number) {
  if (running()) ::kill(pid_, number);  // not reaped yet, so the number is still its own
}

std::optional<Exit> ChildProcess::wait(std::chrono::milliseconds timeout) {
  if (exit_) return exit_;
  process_.wait_for_end(timeout);
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  exit_ = WIFSIGNALED(status) ? Exit{0, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  return exit_;
}

std::optional<std::string> ChildProcess::take_line() {
  for (;;) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> block;
    const ssize_t size = read(output_.get(), block.data(), block.size());
    if (size <= 0) return std::nullopt;
    unread_.append(block.data(), static_cast<std::size_t>(size));
  }
}

// False at the deadline, or if the child has ended.
bool ChildProcess::wait_for_change(Deadline deadline) {
  std::array<pollfd, 2> events{{{changes_.get(), POLLIN, 0}, {process_.descriptor(), POLLIN, 0}}};
  int ready = 0;
  do {
    ready = poll(events.data(), events.size(), milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  std::array<char, 4096> seen;
  while (read(changes_.get(), seen.data(), seen.size()) > 0) {
  }
  return ready > 0 && (events[0].revents & POLLIN) != 0;
}

std::optional<std::string> ChildProcess::read_line(std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  for (bool more = true;; more = wait_for_change(deadline)) {
    // Once more after the end: it may have printed just before.
    if (auto line = take_line()) return line;
    if (!more) return std::nullopt;
  }
}

bool ChildProcess::wait_for_line(std::string_view part, std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  for (;;) {
    const auto line = read_line(std::chrono::milliseconds(milliseconds_until(deadline)));
    if (!line) return false;
    if (line->find(part) != std::string::npos) return true;
  }
}

void run_to_end(const Program& program, std::chrono::milliseconds timeout) {
  ChildProcess child(program);
  const auto exit = child.wait(timeout);
  if (exit && exit->success()) return;
  std::ostringstream text;
  for (const std::string& word : program.argv) text << word << ' ';
  text << "failed: "
       << (exit ? exit->text() : "took longer than " + std::to_string(timeout.count()) + " ms")
       << '\n'
       << std::ifstream(program.output).rdbuf();
  throw std::runtime_error(text.str());
}

std::optional<std::filesystem::path> find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto candidate = std::filesystem::path(folder) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

}  // namespace hapax::sandbox
