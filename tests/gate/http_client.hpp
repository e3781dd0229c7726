// A client of raw bytes, as attackers and old libraries are.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>
#include <string>

namespace hapax::gate {

struct Reply {
  int status = 0;                              // 0: the connection ended before there was one
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket_);
      throw std::runtime_error("cannot connect");
    }
  }
  virtual ~HttpClient() { ::close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // False: the other side has closed. What was sent until then may have been read.
  bool send(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t now = put(bytes.data() + sent, bytes.size() - sent);
      if (now <= 0) return false;
      sent += static_cast<std::size_t>(now);
    }
    return true;
  }

  void half_close() { ::shutdown(socket_, SHUT_WR); }

  // The next answer. `has_body`: not for HEAD.
  Reply read(bool has_body = true) {
    Reply reply;
    std::size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos)
      if (!receive()) return reply;
    std::string head = received_.substr(0, end + 2);
    received_.erase(0, end + 4);
    reply.status = std::stoi(head.substr(9, 3));
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t line_end = head.find("\r\n", at);
      const std::string line = head.substr(at, line_end - at);
      std::string name = line.substr(0, line.find(':'));
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      reply.headers[name] = line.substr(std::min(line.size(), name.size() + 2));
      at = line_end + 2;
    }
    const std::string length = reply.header("content-length");
    const std::size_t bytes = has_body && !length.empty() ? std::stoul(length) : 0;
    while (received_.size() < bytes)
      if (!receive()) break;
    reply.body = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return reply;
  }

  // Whether the other side closes, with nothing left to be read.
  bool ends() {
    while (receive()) {
    }
    return received_.empty() && closed_;
  }

 protected:
  int socket() const { return socket_; }
  virtual ssize_t put(const char* bytes, std::size_t size) {
    return ::send(socket_, bytes, size, MSG_NOSIGNAL);
  }
  virtual ssize_t get(char* bytes, std::size_t size) {
    ssize_t now = 0;
    do {
      now = ::recv(socket_, bytes, size, 0);
    } while (now < 0 && errno == EINTR);
    return now;
  }

 private:
  bool receive() {
    char bytes[16384];
    const ssize_t now = get(bytes, sizeof bytes);
    closed_ = now == 0 || (now < 0 && errno == ECONNRESET);
    if (now <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(now));
    return true;
  }

  int socket_;
  std::string received_;
  bool closed_ = false;
};

}  // namespace hapax::gate
