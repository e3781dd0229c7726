#include "sandbox/process_tree.hpp"

#include <poll.h>

extern "C" {  // glibc 2.36 forgot it
#include <sys/pidfd.h>
}

#include <sys/wait.h>
#include <cerrno>

#include <charconv>
#include <fstream>
#include <stdexcept>

namespace hapax::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kEndTimeout{10};

// Field 4 of /proc/<pid>/stat, behind the name, which may hold anything but ends at the last ')'.
std::optional<pid_t> parent_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 > text.size()) return std::nullopt;
  pid_t parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

std::vector<WatchedProcess> children_of(pid_t parent) {
  std::vector<WatchedProcess> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), pid).ptr;
    if (end != name.data() + name.size() || parent_of(entry.path()) != parent) continue;
    children.emplace_back(pid);  // there, a zombie at worst: a stopped parent reaps nothing
  }
  return children;
}

}  // namespace

void kill_tree(ChildProcess& process) {
  process.signal(SIGSTOP);  // no new children while we look, and none reaped
  siginfo_t stopped;
  if (process.running())
    waitid(P_PID, static_cast<id_t>(process.pid()), &stopped, WSTOPPED | WEXITED | WNOWAIT);
  const std::vector<WatchedProcess> children = children_of(process.pid());
  process.signal(SIGKILL);
  for (const WatchedProcess& child : children) child.signal(SIGKILL);
  bool all_gone = process.wait(kEndTimeout).has_value();
  for (const WatchedProcess& child : children)
    all_gone = child.wait_for_end(kEndTimeout) && all_gone;
  if (!all_gone) throw std::runtime_error("processes are left after SIGKILL");
}

}  // namespace hapax::sandbox
