#include "testing/crash.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <csignal>

#include "sandbox/descriptor.hpp"
#include "sandbox/watched_process.hpp"
#include "testing/crash_points.hpp"

namespace hapax::testing {
namespace {

constexpr std::chrono::minutes kCrashTimeout{1};
constexpr std::size_t kMaxText = 4000;  // fits into a pipe without a reader

// Never returns: neither destructors nor exit handlers of the parent's may run here.
[[noreturn]] void live_and_die(CrashPoint point, const std::function<Outcome()>& deliver,
                               int output) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  arm_crash(name_of(point));
  std::string text;
  try {
    text = "the message was " + deliver().text();
  } catch (const std::exception& error) {
    text = error.what();
  }
  text.resize(std::min(text.size(), kMaxText));
  [[maybe_unused]] const ssize_t written = write(output, text.data(), text.size());
  _exit(0);
}

std::string read_all(int input) {
  std::string text(kMaxText, '\0');
  const ssize_t count = read(input, text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace

std::optional<std::string> crash_in_child(CrashPoint point,
                                          const std::function<Outcome()>& deliver) {
  std::array<int, 2> ends{};
  sandbox::checked(pipe(ends.data()), "pipe");
  sandbox::Descriptor input(ends[0]);
  sandbox::Descriptor output(ends[1]);
  const pid_t child = sandbox::checked(fork(), "fork");
  if (child == 0) live_and_die(point, deliver, output.get());
  output.reset();
  const sandbox::WatchedProcess watched(child);
  const bool ended = watched.wait_for_end(kCrashTimeout);
  if (!ended) watched.signal(SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!ended) return "the handler did not end within a minute";
  if (WIFEXITED(status)) return read_all(input.get());
  if (WTERMSIG(status) == SIGKILL) return std::nullopt;
  return "the handler ended its process with signal " + std::to_string(WTERMSIG(status));
}

}  // namespace hapax::testing
