#include "sandbox/watched_process.hpp"

#include <poll.h>
#include <sys/syscall.h>

#include <cerrno>

namespace hapax::sandbox {

WatchedProcess::WatchedProcess(pid_t pid)
    : descriptor_(checked(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), "pidfd_open")) {}

bool WatchedProcess::wait_for_end(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ended{descriptor_.get(), POLLIN, 0};
    const int ready = poll(&ended, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

void WatchedProcess::signal(int number) const {
  syscall(SYS_pidfd_send_signal, descriptor_.get(), number, nullptr, 0);
}

}  // namespace hapax::sandbox
