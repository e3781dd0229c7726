#include "observe/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace hapax::observe::service_manager {
namespace {

using std::chrono::steady_clock;

constexpr int kTimesInAnInterval = 3;

class Socket {
 public:
  Socket() {
    const char* const path = std::getenv("NOTIFY_SOCKET");
    if (path == nullptr || (*path != '/' && *path != '@')) return;
    const std::size_t length = std::strlen(path);
    if (length >= sizeof address_.sun_path) return;
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path, path, length);
    if (*path == '@') address_.sun_path[0] = '\0';  // an abstract name
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
    descriptor_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  }

  void send(const std::string& text) const {
    if (descriptor_ < 0) return;
    (void)sendto(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address_), length_);
  }

 private:
  sockaddr_un address_{};
  socklen_t length_ = 0;
  int descriptor_ = -1;
};

const Socket& manager() {
  static const Socket socket;
  return socket;
}

// 0: nothing watches.
steady_clock::duration watchdog_interval() {
  const char* const text = std::getenv("WATCHDOG_USEC");
  return std::chrono::microseconds(text == nullptr ? 0 : std::strtoll(text, nullptr, 10));
}

}  // namespace

void ready(const std::string& status) {
  std::string line = status;
  std::replace(line.begin(), line.end(), '\n', ' ');
  manager().send("READY=1\nSTATUS=" + line);
}

void alive() {
  static const steady_clock::duration every = watchdog_interval() / kTimesInAnInterval;
  static std::atomic<steady_clock::time_point> next{};
  if (every <= steady_clock::duration::zero()) return;
  const auto now = steady_clock::now();
  if (now < next.load(std::memory_order_relaxed)) return;
  next.store(now + every, std::memory_order_relaxed);
  manager().send("WATCHDOG=1");
}

void stopping() { manager().send("STOPPING=1\nSTATUS=draining"); }

}  // namespace hapax::observe::service_manager
