#include "sandbox/launch.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/close_range.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

namespace hapax::sandbox {
namespace {

struct Identity {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;
};

std::optional<Identity> look_up(const std::string& user) {
  if (user.empty()) return std::nullopt;
  errno = 0;
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr)
    throw std::system_error(errno == 0 ? ENOENT : errno, std::generic_category(),
                            "no such user: " + user);
  Identity identity{entry->pw_uid, entry->pw_gid, std::vector<gid_t>(64)};
  int count = static_cast<int>(identity.groups.size());
  if (getgrouplist(user.c_str(), entry->pw_gid, identity.groups.data(), &count) < 0)
    throw std::system_error(E2BIG, std::generic_category(), "groups of user " + user);
  identity.groups.resize(static_cast<std::size_t>(count));
  return identity;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged(const std::map<std::string, std::string>& additions) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!additions.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : additions) result.push_back(name + '=' + value);
  return result;
}

// Everything that the child needs, made before the fork: after it, with other threads about, it
// may not even allocate.
struct Plan {
  std::vector<std::string> argv_texts;
  std::vector<std::string> environment_texts;
  std::vector<char*> argv;
  std::vector<char*> environment;
  const char* folder;
  std::optional<Identity> identity;
  int output;
  int death_signal;
  pid_t parent;
};

bool become(const Identity& identity) {
  return setgroups(identity.groups.size(), identity.groups.data()) == 0 &&
         setgid(identity.group) == 0 && setuid(identity.user) == 0;
}

void forget_our_signals() {
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child. Returns only if something failed, with errno.
void execute(const Plan& plan) {
  forget_our_signals();
  if (plan.output >= 0 && (dup2(plan.output, 1) < 0 || dup2(plan.output, 2) < 0)) return;
  if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return;
  if (plan.identity && !become(*plan.identity)) return;
  // After setuid, which clears it.
  if (prctl(PR_SET_PDEATHSIG, plan.death_signal) != 0) return;
  if (getppid() != plan.parent) _exit(127);  // it died before the line above
  if (plan.folder != nullptr && chdir(plan.folder) != 0) return;
  execvpe(plan.argv[0], plan.argv.data(), plan.environment.data());
}

}  // namespace

pid_t launch(const Program& program, int output) {
  Plan plan{program.argv, merged(program.environment), {},      {}, nullptr, look_up(program.user),
            output,       program.death_signal,        getpid()};
  plan.argv = pointers(plan.argv_texts);
  plan.environment = pointers(plan.environment_texts);
  if (!program.folder.empty()) plan.folder = program.folder.c_str();

  // Closes at exec; if exec fails, errno comes through it.
  std::array<int, 2> ends{};
  checked(pipe2(ends.data(), O_CLOEXEC), "pipe");
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t pid = checked(fork(), "fork");
  if (pid == 0) {
    execute(plan);
    const int error = errno;
    const ssize_t written = write(write_end.get(), &error, sizeof error);
    _exit(written == sizeof error ? 126 : 127);
  }
  write_end.reset();
  int error = 0;
  if (read(read_end.get(), &error, sizeof error) == sizeof error) {
    waitpid(pid, nullptr, 0);
    throw std::system_error(error, std::generic_category(), "cannot start " + program.argv[0]);
  }
  return pid;
}

}  // namespace hapax::sandbox
