#include "tools/demo/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

namespace hapax::app {
namespace {

// All that the other side sends until it closes; "" if it cannot be reached.
std::string said_by(std::uint16_t port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (socket < 0) return "";
  const timeval limit{10, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string said;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(socket, bytes, sizeof bytes, 0)) > 0;)
      said.append(bytes, static_cast<std::size_t>(got));
  }
  ::close(socket);
  return said;
}

std::string header(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

}  // namespace

DemoReply demo_request(std::uint16_t port, const std::string& method, const std::string& path,
                       const std::string& head, const std::string& body) {
  const std::string said = said_by(
      port, method + " " + path + " HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n" + head +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::size_t end = said.find("\r\n\r\n");
  if (!said.starts_with("HTTP/1.1 ") || end == std::string::npos) return {};
  const std::string headers = said.substr(0, end + 2);
  DemoReply reply{std::atoi(headers.c_str() + 9), header(headers, "Location"),
                  header(headers, "Idempotent-Replayed") == "true", said.substr(end + 4)};
  if (header(headers, "Content-Length") != std::to_string(reply.body.size())) return {};
  return reply;
}

}  // namespace hapax::app
