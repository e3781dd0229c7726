#include "sandbox/free_port.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>

#include "sandbox/descriptor.hpp"

namespace hapax::sandbox {
namespace {

// Reserves the port among our own processes, which may look for ports before a server has bound
// this one. The reservation is an abstract socket, and lasts as long as this process.
bool reserve(std::uint16_t port) {
  const Descriptor reservation(checked(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "hapax-port-" + std::to_string(port);
  name.copy(address.sun_path + 1, name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(reservation.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return false;
  return ::fcntl(reservation.get(), F_DUPFD_CLOEXEC, 0) >= 0;  // this copy is never closed
}

}  // namespace

std::uint16_t free_port() {
  constexpr int kTries = 100;
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> ports(20'000, 32'000);
  for (int i = 0; i < kTries; ++i) {
    const Descriptor probe(checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::uint16_t port = ports(random);
    address.sin_port = htons(port);
    if (bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        reserve(port))
      return port;
  }
  throw std::runtime_error("no free TCP port found on 127.0.0.1 between 20000 and 32000");
}

}  // namespace hapax::sandbox
