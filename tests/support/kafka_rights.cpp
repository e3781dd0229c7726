#include "support/kafka_rights.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

namespace hapax::support {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;
// Requests, in the first version that Kafka 4 knows.
constexpr std::int16_t kDescribeAcls = 29, kCreateAcls = 30, kDeleteAcls = 31, kVersion = 1;
constexpr std::uint8_t kLiteral = 3, kAll = 2, kDeny = 2, kAllow = 3;

template <class Number>
void add(std::string& bytes, Number number) {
  for (int shift = static_cast<int>(sizeof number) * 8 - 8; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift);
}

void add(std::string& bytes, const std::optional<std::string>& text) {
  add(bytes, text ? static_cast<std::int16_t>(text->size()) : std::int16_t{-1});
  bytes += text.value_or("");
}

template <class Number>
Number take(std::string& bytes) {
  if (bytes.size() < sizeof(Number)) throw std::runtime_error("Kafka's answer is too short");
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = static_cast<Number>(number << 8 | static_cast<unsigned char>(bytes[i]));
  bytes.erase(0, sizeof number);
  return number;
}

class Socket {
 public:
  explicit Socket(const std::string& bootstrap) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const auto colon = bootstrap.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(bootstrap.substr(colon + 1))));
    inet_pton(AF_INET, bootstrap.substr(0, colon).c_str(), &address.sin_addr);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no Kafka at " + bootstrap);
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Returns the answer behind its correlation id.
  std::string ask(std::int16_t request, const std::string& body) const {
    std::string all;
    add(all, request);
    add(all, kVersion);
    add(all, std::int32_t{1});
    add(all, std::optional<std::string>("test"));
    all += body;
    std::string size;
    add(size, static_cast<std::int32_t>(all.size()));
    all.insert(0, size);
    if (send(fd_, all.data(), all.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(all.size()))
      throw std::runtime_error("Kafka takes no request");
    std::string head = read(4);
    std::string answer = read(static_cast<std::size_t>(take<std::int32_t>(head)));
    answer.erase(0, 4);
    return answer;
  }

 private:
  std::string read(std::size_t size) const {
    std::string bytes(size, '\0');
    if (recv(fd_, bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size))
      throw std::runtime_error("Kafka has not answered");
    return bytes;
  }

  int fd_;
};

std::string binding(const Right& right, std::uint8_t operation, std::uint8_t permission,
                    bool is_filter) {
  std::string bytes;
  add(bytes, static_cast<std::uint8_t>(right.of));
  add(bytes, std::optional(right.name));
  add(bytes, kLiteral);
  add(bytes, is_filter ? std::nullopt : std::optional<std::string>("User:*"));
  add(bytes, is_filter ? std::nullopt : std::optional<std::string>("*"));
  add(bytes, operation);
  add(bytes, permission);
  return bytes;
}

std::string denial(const Right& right, bool is_filter = true) {
  return binding(right, static_cast<std::uint8_t>(right.operation), kDeny, is_filter);
}

// `answer`: the time of a throttle, and a result for each binding or filter.
void expect_done(std::string answer) {
  take<std::int32_t>(answer);
  take<std::int32_t>(answer);
  if (const auto error = take<std::int16_t>(answer); error != 0)
    throw std::runtime_error("Kafka changes no right: error " + std::to_string(error));
}

// The controller answers before the broker has taken a change over.
void await_denial(const Socket& kafka, const Right& right, bool wanted) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::string answer = kafka.ask(kDescribeAcls, denial(right));
    take<std::int32_t>(answer);
    if (const auto error = take<std::int16_t>(answer); error != 0)
      throw std::runtime_error("Kafka tells no rights: error " + std::to_string(error));
    const auto words = take<std::int16_t>(answer);
    if (words > 0) answer.erase(0, static_cast<std::size_t>(words));
    if ((take<std::int32_t>(answer) > 0) == wanted) return;
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the broker has not taken a right over");
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

void take_away(const std::string& bootstrap, const Right& right) {
  const Socket kafka(bootstrap);
  std::string body;
  add(body, std::int32_t{2});
  body += binding(right, kAll, kAllow, false) + denial(right, false);
  expect_done(kafka.ask(kCreateAcls, body));
  await_denial(kafka, right, true);
}

void give_back(const std::string& bootstrap, const Right& right) {
  const Socket kafka(bootstrap);
  std::string body;
  add(body, std::int32_t{1});
  body += denial(right);
  expect_done(kafka.ask(kDeleteAcls, body));
  await_denial(kafka, right, false);
}

}  // namespace hapax::support
