#include "sandbox/free_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <random>
#include <stdexcept>

#include "sandbox/descriptor.hpp"

namespace hapax::sandbox {

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
    if (bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return port;
  }
  throw std::runtime_error("no free TCP port found on 127.0.0.1 between 20000 and 32000");
}

}  // namespace hapax::sandbox
